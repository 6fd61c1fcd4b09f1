// A link to a place inside a folded box opens the box.
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let box = place?.closest("details:not([open])"); box; box = box.parentElement.closest("details:not([open])")) {
    box.open = true;
  }
  place?.scrollIntoView();
}
if (location.hash) {
  addEventListener("load", reveal);
}
addEventListener("hashchange", reveal);

// On paper the page is light, whatever it is on the screen.
let onScreen = null;
addEventListener("beforeprint", () => {
  onScreen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = onScreen;
});
