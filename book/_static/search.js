// The search page: ranks what searchindex.js holds (tools/sphinx_ext/search.py writes it), and shows it.
"use strict";

const Search = (() => {
  const WEIGHT = { title: 30, section: 12, term: 12, code: 12, about: 8 };
  const RESULT = 14; // of a boxed result, whatever its kind
  const KIND = { section: "Section", term: "Term", code: "Code" };
  const FIRST = 10; // pages that are shown at once
  const LINES = 240; // characters of a page under its title
  const stemmed = new Map();
  let index, stemmer, heads;

  function stem(word) {
    if (!stemmed.has(word)) stemmed.set(word, stemmer.stemWord(word));
    return stemmed.get(word);
  }

  const names = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const counts = (word) => word && !/^\d+$/.test(word) && !index.stopwords.includes(word);
  const stems = (text) =>
    names(text).flatMap((word) => [...new Set([word, ...word.split("_")])]).filter(counts).map(stem);

  const begins = (whole, word) => word.length > 3 && whole.startsWith(word);

  function open(read) {
    index = read;
    stemmer = new Stemmer();
    heads = index.pages.map(([name, title, about, chapter]) => {
      const worth = chapter ? 1 : /^book\/(ledger|corrections|changes)/.test(name) ? 0.3 : 0.6;
      return { name, title, about, worth, fields: [["title", title], ["about", about]] };
    });
    for (const [page, ...place] of index.places) heads[page].fields.push(place);
    for (const head of heads) {
      head.fields = head.fields.map(([kind, text, anchor]) => ({ kind, text, anchor, stems: stems(text) }));
    }
    const query = new URLSearchParams(location.search).get("q");
    for (const field of document.querySelectorAll("input[name=q]")) field.value = query;
    if (query) show(query);
  }

  // Which pages hold a word, and how often; for a word that none holds, those that begin with it.
  function holding(word) {
    const own = Object.hasOwn(index.words, word);
    const alike = own ? [word] : Object.keys(index.words).filter((one) => begins(one, word));
    const pages = new Map();
    for (const [place] of alike.flatMap((one) => [...index.words[one].matchAll(/.../g)])) {
      const page = parseInt(place.slice(0, 2), 36);
      pages.set(page, (pages.get(page) ?? 0) + Number(place[2]));
    }
    return pages;
  }

  // The query's stems, and what they become when the book's words take the place of the reader's.
  function variants(words) {
    const query = ` ${words.join(" ")} `;
    return [words, ...index.synonyms.flatMap(([said, ...others]) =>
      query.includes(` ${said.join(" ")} `)
        ? others.map((other) => query.replace(said.join(" "), other.join(" ")).trim().split(" ")) : [])];
  }

  // How well each page answers: all words that are found anywhere together count, the rarer the more.
  function ranked(words) {
    const where = [...new Set(words)].map((word) => [word, holding(word)]);
    const rarity = new Map(where.map(([word, pages]) => [word, Math.log(1 + heads.length / (pages.size || 1))]));
    const sum = (some) => some.reduce((total, word) => total + rarity.get(word), 0);
    const whole = sum([...rarity.keys()]);
    return heads.flatMap((head, page) => {
      const held = where.filter(([, pages]) => pages.has(page));
      if (!held.length) return [];
      const fields = head.fields.flatMap((field) => {
        const shared = [...rarity.keys()].filter((word) => field.stems.some((one) => one === word || begins(one, word)));
        const part = sum(shared) / whole;
        const worth = (WEIGHT[field.kind] ?? RESULT) * whole * part ** 3 * (shared.length / field.stems.length) ** 0.5;
        return shared.length ? [{ ...field, part, worth }] : [];
      });
      const best = (kinds) => Math.max(0, ...fields.filter(kinds).map((field) => field.worth));
      const text = held.reduce((total, [word, pages]) => total + rarity.get(word) * (1 + Math.log2(pages.get(page))), 0);
      const score = text + best(({ kind }) => kind === "title") + best(({ kind }) => kind === "about")
        + best(({ anchor }) => anchor !== undefined);
      return [{ head, fields, held: held.length, score: score * head.worth, words }];
    });
  }

  // Pages that hold all words (where none does, as many as any), the best first, with their best places.
  function find(query) {
    const [words, ...others] = variants(names(query).filter(counts).map(stem));
    const whole = [words, ...others].flatMap((some) => ranked(some).filter(({ held }) => held === new Set(some).size));
    const some = ranked(words);
    const most = Math.max(...some.map(({ held }) => held));
    const best = new Map();
    for (const one of whole.length ? whole : some.filter(({ held }) => held === most)) {
      if (!(best.get(one.head)?.score >= one.score)) best.set(one.head, one);
    }
    return [...best.values()].sort((a, b) => b.score - a.score).map(({ head, fields, words }) => {
      const places = new Map(fields
        .filter(({ anchor, part }) => anchor !== undefined && part === 1)
        .sort((a, b) => a.worth - b.worth)
        .map((place) => [place.text.toLowerCase(), place]));
      return { ...head, words, places: [...places.values()].reverse().slice(0, 3) };
    });
  }

  const made = (name, text = "", more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);

  // The lines of a page that hold most of the words, without code and equations, the words marked.
  async function lines({ name, about, words }) {
    const texts = await fetch(`search/${name}.json`).then((answer) => answer.json()).catch(() => []);
    const hit = (word) => stems(word).some((one) => words.includes(one));
    let best = [about, "", 0];
    for (const [text, anchor] of texts) {
      const number = new Set(stems(text).filter((one) => words.includes(one))).size;
      if (number > best[2]) best = [text, anchor, number];
    }
    const [text] = best;
    const first = names(text).find(hit) ?? "";
    const from = Math.max(0, text.toLowerCase().indexOf(first) - LINES / 3);
    const start = from && text.indexOf(" ", from) + 1;
    const shown = text.slice(start, start + LINES).replace(/\s\S*$/, (end) => (start + LINES < text.length ? " …" : end));
    const paragraph = made("p", start ? "… " : "", { className: "context" });
    for (const piece of shown.split(/([\p{L}\p{N}_]+)/u)) {
      paragraph.append(/[\p{L}\p{N}]/u.test(piece) && hit(piece) ? made("mark", piece) : piece);
    }
    return paragraph;
  }

  async function item(found) {
    const entry = made("li");
    const address = `${found.name}.html`;
    entry.append(made("a", found.title, { href: address }));
    if (found.places.length) {
      const places = made("ul", "", { className: "places" });
      for (const { kind, text, anchor } of found.places) {
        const place = made("li", `${KIND[kind] ?? "Result"}: `);
        place.append(made("a", text, { href: `${address}#${anchor}` }));
        places.append(place);
      }
      entry.append(places);
    }
    entry.append(await lines(found));
    return entry;
  }

  async function show(query) {
    const found = find(query);
    const place = document.getElementById("search-results");
    const number = found.length === 1 ? "One page" : `${found.length} pages`;
    const status = made("p", "", { className: "search-summary", role: "status" });
    const list = made("ul", "", { className: "search" });
    place.replaceChildren(status, list);
    try {
      localStorage.setItem("sphinx_highlight_terms", names(query).filter(counts).join(" "));
    } catch {} // a page on disk may not
    const add = async (some) => list.append(...(await Promise.all(some.map(item))));
    await add(found.slice(0, FIRST));
    if (found.length > FIRST) {
      const more = made("button", `Show the other ${found.length - FIRST}`, { type: "button", className: "search-more" });
      more.addEventListener("click", () => add(found.slice(FIRST)).then(() => more.remove()));
      place.append(more);
    }
    status.textContent = found.length ? `${number} found.` : "Nothing was found. Fewer words, or another one, may help.";
  }

  return { open, find, show };
})();
