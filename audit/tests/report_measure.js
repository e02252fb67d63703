// Measures a report from outside: how far it is too wide, which texts are too faint (WCAG 2.2 AA, 4.5 to 1,
// or 3 to 1 for large ones), and how many cards each choice leaves.
function channel(value) {
  const part = value / 255;
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}
function parts(colour) {
  const found = colour.match(/[\d.]+/g).map(Number);
  return found.length === 3 ? [...found, 1] : found;
}
function luminance(colour) {
  const [red, green, blue] = parts(colour).map(channel);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
function behind(element, view) {
  for (let one = element; one; one = one.parentElement) {
    const colour = view.getComputedStyle(one).backgroundColor;
    if (parts(colour)[3] === 1) return colour;
  }
  return "rgb(255, 255, 255)";
}
function visible(element, view) {
  return element.checkVisibility() && view.getComputedStyle(element).opacity !== "0";
}
function measure() {
  const found = { overflow: {}, faint: [], wide: [], texts: 0, choices: {} };
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, view = frame.contentWindow;
    for (const one of page.querySelectorAll("details")) one.open = true;
    const width = page.documentElement.clientWidth;
    found.overflow[frame.width] = page.documentElement.scrollWidth - width;
    if (!found.overflow[frame.width]) continue;
    const wide = [...page.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > width + 1);
    const outside = wide.filter((one) => !one.closest(".scroll *"));
    found.wide.push(...outside.slice(-3).map((one) => one.outerHTML.slice(0, 300)));
  }
  const frame = document.querySelectorAll("iframe")[1];
  const page = frame.contentDocument, view = frame.contentWindow;
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), element = walker.currentNode.parentElement;
    if (!text || !visible(element, view)) continue;
    found.texts += 1;
    const style = view.getComputedStyle(element);
    const [one, other] = [luminance(style.color), luminance(behind(element, view))].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.faint.push({ text: text.slice(0, 40), ratio: ratio.toFixed(2) });
  }
  const cards = () => [...page.querySelectorAll("article")].filter((one) => visible(one, view)).length;
  const any = () => ["d-any", "c-any"].forEach((id) => page.getElementById(id).click());
  for (const choice of page.querySelectorAll(".filters input[name=d], .filters input[name=c]")) {
    any();
    choice.click();
    found.choices[choice.id] = cards();
  }
  if (page.getElementById("d-deny") && page.getElementById("c-exited")) {
    any();
    page.getElementById("d-deny").click();
    page.getElementById("c-exited").click();
    found.choices["d-deny & c-exited"] = cards();
  }
  document.getElementById("found").textContent = JSON.stringify(found);
}
window.addEventListener("load", measure);
