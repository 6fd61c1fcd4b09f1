// Shows what a link leads to (an equation, figure, boxed result, exercise, term or reference) beside the link: under the
// mouse, at the focus, and at the first tap of a finger; the second follows the link. Escape and a click elsewhere end it.
"use strict";

{
  const WHAT = "div.math, figure, div.proof, div.exercise, dt, div.citation";
  const ELSEWHERE = /^#(equation|fig|thm|ex|term)-|bibliography\.html#/; // on other pages: what is worth to be fetched
  const DELAY = 250; // ms, under the mouse
  const pages = new Map();
  const box = Object.assign(document.createElement("div"), { id: "preview", className: "preview", hidden: true });
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Preview");
  let shown = null; // the link whose preview is there, or on its way
  let timer = 0;
  let touch = false;

  const linkOf = (node) => {
    const link = node.closest?.("article a.reference.internal[href*='#']");
    return link && !box.contains(link) && (here(link) || ELSEWHERE.test(link.hash) || ELSEWHERE.test(link.href)) ? link : null;
  };
  const here = (link) => link.pathname === location.pathname;

  function page(link) {
    const address = link.href.split("#")[0];
    if (!pages.has(address)) {
      const read = (text) => new DOMParser().parseFromString(text, "text/html");
      pages.set(address, fetch(address).then((answer) => (answer.ok ? answer.text() : "")).then(read));
    }
    return pages.get(address);
  }

  // A copy of what the link leads to, with its own links and pictures, without what belongs to its place.
  function copy(link, root) {
    const target = root.getElementById(decodeURIComponent(link.hash.slice(1)))?.closest(WHAT);
    if (!target) return null;
    const made = document.importNode(target, true);
    const whole = document.createElement(target.localName === "dt" ? "dl" : "div");
    whole.append(made);
    let next = target;
    while (target.localName === "dt" && (next = next.nextElementSibling) && whole.lastChild.localName !== "dd") {
      whole.append(document.importNode(next, true));
    }
    for (const node of whole.querySelectorAll(".headerlink, .computed-by, details.at-size, script")) node.remove();
    for (const node of whole.querySelectorAll("[id]")) node.removeAttribute("id");
    for (const name of ["src", "href"]) {
      for (const node of whole.querySelectorAll(`[${name}]`)) {
        node.setAttribute(name, new URL(node.getAttribute(name), link.href));
      }
    }
    return whole;
  }

  // Equations of another page are not set yet, and this page may have none of its own: then MathJax comes as it does there.
  async function set(root) {
    if (!box.querySelector(".math:not(:has(mjx-container)), .mathjax_process")) return;
    if (!window.MathJax) {
      const [settings, file] = [/^window\.MathJax/, /mathjax/];
      document.head.append(copied([...root.scripts].find((one) => settings.test(one.textContent.trim()))));
      const script = copied([...root.scripts].find((one) => file.test(one.getAttribute("src"))));
      script.src = `${document.documentElement.dataset.content_root}_static/${script.getAttribute("src").split("_static/")[1]}`;
      const ready = new Promise((done) => script.addEventListener("load", done));
      document.head.append(script);
      await ready;
    }
    await MathJax.startup.promise;
    await MathJax.typesetPromise([box]);
  }

  function copied(script) {
    const made = document.createElement("script");
    made.textContent = script.textContent;
    for (const { name, value } of script.attributes) made.setAttribute(name, value);
    return made;
  }

  function place(link) {
    box.classList.toggle("at-foot", touch);
    box.style.left = box.style.top = "";
    if (touch) return;
    const lines = link.getClientRects();
    const room = document.documentElement;
    const frame = box.offsetParent.getBoundingClientRect();
    const { width, height } = box.getBoundingClientRect();
    const [first, last] = [lines[0], lines[lines.length - 1]];
    const below = last.bottom + height < room.clientHeight || first.top < height;
    const left = Math.max(8, Math.min(last.left, room.clientWidth - width - 8));
    box.style.left = `${left - frame.left}px`;
    box.style.top = `${(below ? last.bottom : first.top - height) - frame.top}px`;
  }

  async function show(link) {
    if (shown === link) return true;
    hide();
    shown = link;
    const root = here(link) ? document : await page(link).catch(() => null);
    const found = root && copy(link, root);
    if (shown !== link || !found) {
      if (shown === link) shown = null;
      return false;
    }
    box.replaceChildren(found);
    if (touch) {
      const follow = Object.assign(document.createElement("a"), { href: link.href, textContent: "Go there" });
      box.append(follow);
    }
    document.querySelector(".bd-content").append(box);
    box.style.visibility = "hidden"; // MathJax sets what has a size
    box.hidden = false;
    await set(root);
    if (shown !== link) return false;
    link.removeAttribute("title");
    link.setAttribute("aria-describedby", box.id);
    place(link);
    box.style.visibility = "";
    return true;
  }

  function hide() {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = null;
    box.hidden = true;
    box.replaceChildren();
  }

  function soon(act) {
    clearTimeout(timer);
    timer = setTimeout(act, DELAY);
  }

  addEventListener("pointerdown", (event) => (touch = event.pointerType === "touch"), true);
  addEventListener("keydown", (event) => {
    touch = false;
    if (event.key === "Escape") hide();
  }, true);
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType === "touch") return;
    const link = linkOf(target);
    if (link) {
      touch = false;
      soon(() => show(link));
    } else if (box.contains(target)) {
      clearTimeout(timer);
    } else if (shown !== document.activeElement || !shown) {
      soon(hide);
    }
  });
  document.addEventListener("focusin", ({ target }) => {
    const link = linkOf(target);
    if (link?.matches(":focus-visible")) show(link);
    else if (!box.contains(target)) hide();
  });
  document.addEventListener("click", (event) => {
    const link = linkOf(event.target);
    if (touch && link && shown !== link && !event.ctrlKey) {
      event.preventDefault();
      show(link).then((there) => there || shown || location.assign(link.href));
    } else if (!box.contains(event.target)) {
      hide();
    }
  });
}
