// A page of the ledger: filters its rows by verdict, chapter and size, and sorts them by what they use of their tolerance.
// The state stands in the address, so that it can be shared; without this script all rows are there, in reading order.
document.querySelectorAll("ul.claims").forEach((list) => {
  const rows = [...list.children];
  const form = document.createElement("form");
  const told = document.createElement("output");
  const chapters = new Map(
    [...document.querySelectorAll("nav.bd-links a")].map((link) => [new URL(link.href).pathname, link.textContent.trim()]),
  );
  const title = (page) =>
    [...chapters].find(([path]) => path.endsWith(`/${page}.html`))?.[1] ?? page;
  const words = new Map(rows.map((row) => [row.dataset.verdict, row.querySelector(".verdict").textContent]));
  const present = (key) => [...new Set(rows.map((row) => row.dataset[key]).filter(Boolean))];
  const menus = {
    verdict: ["Verdict", [["", "all"], ...present("verdict").map((name) => [name, words.get(name)])]],
    chapter: ["Chapter", [["", "all"], ...present("chapter").map((page) => [page.replace("book/", ""), title(page)])]],
    size: ["Size", [["", "all"], ["here", "measured in this build"], ["full", "also at full size"]]],
    sort: ["Order", [["", "as in the book"], ["margin", "nearest to the tolerance first"]]],
  };
  for (const [name, [label, options]] of Object.entries(menus)) {
    const menu = Object.assign(document.createElement("select"), { name });
    menu.append(...options.map(([value, text]) => new Option(text, value)));
    const around = document.createElement("label");
    around.append(`${label} `, menu);
    form.append(around);
  }
  form.className = "claims-control";
  told.setAttribute("aria-live", "polite");
  form.append(told);
  list.before(form);

  function show() {
    const { verdict, chapter, size, sort } = Object.fromEntries(new FormData(form));
    const used = (row) => parseFloat(row.dataset[size === "full" ? "full" : "here"] ?? -1);
    const shown = rows.filter((row) => {
      row.hidden =
        (verdict && row.dataset.verdict !== verdict) ||
        (chapter && row.dataset.chapter !== `book/${chapter}`) ||
        (size && !row.dataset.size?.includes(size));
      return !row.hidden;
    });
    list.append(...(sort ? rows.toSorted((one, other) => used(other) - used(one)) : rows));
    told.textContent = `${shown.length} of ${rows.length} rows`;
  }
  function keep() {
    const state = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", `${location.pathname}${state.size ? `?${state}` : ""}`);
    show();
  }
  function read() {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const state = new URLSearchParams(location.search);
    for (const name in menus) {
      const wanted = state.get(name) ?? "";
      form.elements[name].value = [...form.elements[name].options].some(({ value }) => value === wanted) ? wanted : "";
    }
    show();
    if (place?.hidden) {
      form.reset();
      keep();
    }
    place?.scrollIntoView();
  }
  form.addEventListener("change", keep);
  addEventListener("hashchange", read);
  read();
});
