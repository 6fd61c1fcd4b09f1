// A displayed equation is as large as its place allows: it shrinks to fit, down to LEAST of its size, then it scrolls.
// What scrolls does so by keyboard, too: an equation, and the line of a check on a phone.
// No line of text begins with the comma that follows a formula.
const LEAST = 0.54;

const sizes = new WeakMap(); // as MathJax set them

function fit(equation) {
  if (!sizes.has(equation)) sizes.set(equation, equation.style.fontSize);
  equation.style.fontSize = sizes.get(equation);
  const whole = parseFloat(getComputedStyle(equation).fontSize);
  // Margins inside do not shrink with the letters: one per cent less.
  const share = Math.max(LEAST, (0.99 * equation.clientWidth) / equation.scrollWidth);
  if (share < 0.99) equation.style.fontSize = `${whole * share}px`;
}

// A browser may break the line beside every formula: what belongs to it is kept with it.
function keep(formula) {
  const [before, after] = [formula.previousSibling, formula.nextSibling];
  const opening = before?.nodeType === Node.TEXT_NODE && /[([“]+$/.exec(before.data);
  const closing = after?.nodeType === Node.TEXT_NODE && /^[\])”’.,;:!?]+/.exec(after.data);
  if (!opening && !closing) return;
  const whole = document.createElement("span");
  whole.className = "kept";
  formula.before(whole);
  if (opening) whole.append(before.splitText(opening.index));
  whole.append(formula);
  if (closing) {
    after.splitText(closing[0].length);
    whole.append(after);
  }
}

addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  document.querySelectorAll("span.math").forEach(keep);
  const widths = new WeakMap();
  const watch = new ResizeObserver((changed) => {
    for (const { target } of changed) {
      if (target.clientWidth === widths.get(target)) continue;
      widths.set(target, target.clientWidth);
      if (target.matches("mjx-container")) fit(target);
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const one of document.querySelectorAll('mjx-container[display="true"], p.ledger-line')) watch.observe(one);
});
