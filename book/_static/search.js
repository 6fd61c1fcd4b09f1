// An index entry's place in a page may hold no text. Sphinx's search then has no lines to show for it, and stops with an error:
// show the first lines of the page that hold the word instead.
if (typeof Search !== "undefined") {
  const summary = Search.makeSearchSummary;
  Search.makeSearchSummary = (page, words, anchor) =>
    summary(page, words, anchor) ?? summary(page, words) ?? document.createElement("p");
}

// A query may be the name of something that every object has, such as "constructor": of the index only its own words count.
if (typeof Search !== "undefined") {
  const bare = Object.create(null, { hasOwnProperty: { value(name) { return Object.hasOwn(this, name); } } });
  const bareIndex = (index) => {
    Object.setPrototypeOf(index.terms, bare);
    Object.setPrototypeOf(index.titleterms, bare);
  };
  const setIndex = Search.setIndex;
  Search.setIndex = (index) => {
    bareIndex(index);
    setIndex(index);
  };
  if (Search.hasIndex()) bareIndex(Search._index); // it came before this script
}
