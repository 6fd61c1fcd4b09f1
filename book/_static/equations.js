// What is wider than its place scrolls, also by keyboard: an equation, and the line of a check on a phone.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const watch = new ResizeObserver((changed) => {
    for (const { target } of changed) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const one of document.querySelectorAll('mjx-container[display="true"], p.ledger-line')) watch.observe(one);
});
