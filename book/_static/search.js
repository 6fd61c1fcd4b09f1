// An index entry's place in a page may hold no text. Sphinx's search then has no lines to show for it, and stops with an error:
// show the first lines of the page that hold the word instead.
if (typeof Search !== "undefined") {
  const summary = Search.makeSearchSummary;
  Search.makeSearchSummary = (page, words, anchor) =>
    summary(page, words, anchor) ?? summary(page, words) ?? document.createElement("p");
}
