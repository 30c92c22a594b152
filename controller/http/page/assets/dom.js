// Elements out of values. A text is always text: nothing here makes markup of what a cluster is called.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Properties that are null, undefined or false are left out, and `true` is an empty attribute. */
export function h(name, properties, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** The same of a picture. */
export function svg(name, properties, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    // By the object model: a policy without inline styles refuses the attribute.
    if (name === "style") for (const [one, size] of Object.entries(value)) element.style.setProperty(one, size);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Make the children of an element those that are given, and touch only what differs: who has moved the focus into it, or
 * listens to what is read out of it, is disturbed by nothing that stays as it is.
 */
export function show(parent, ...children) {
  const wanted = document.createElement("div");
  wanted.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  matchChildren(parent, [...wanted.childNodes]);
}

function matchChildren(parent, wanted) {
  wanted.forEach((next, place) => {
    const old = parent.childNodes[place];
    if (!old) parent.append(next);
    else if (!isSame(old, next)) old.replaceWith(next);
    else if (!old.isEqualNode(next)) match(old, next);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

function isSame(old, next) {
  return old.nodeName === next.nodeName && old.dataset?.key === next.dataset?.key;
}

function match(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...next.attributes]) {
    if (name === "style") old.style.cssText = next.style.cssText;
    // What the reader has opened stays open.
    else if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  matchChildren(old, [...next.childNodes]);
}

const SHAPES = {
  good: "M20.3 6.7 9.5 17.5 3.7 11.7",
  doubtful: "M12 7.5v5.5M12 16.5v.4",
  bad: "M7.5 7.5l9 9M16.5 7.5l-9 9",
  lost: "M6 12h12",
};

/** A picture of how good something is; the words beside it say so, too. */
export function icon(kind) {
  const shape = svg("path", { d: SHAPES[kind], fill: "none", stroke: "currentColor", "stroke-width": 3, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return svg("svg", { class: `icon ${kind}`, viewBox: "0 0 24 24", "aria-hidden": "true" }, shape);
}

const NUMBERS = new Intl.NumberFormat("en");

/** 1538 as "1,538"; nothing known as a dash. */
export function number(value) {
  return value === null || value === undefined ? "–" : NUMBERS.format(value);
}

/** "1 partition", "1,538 partitions". */
export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A share from 0 to 1: "25.5 %", and never a zero that is none. */
export function percent(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  if (share < 1 && share > 0.999) return "> 99.9 %";
  return `${(share * 100).toFixed(share === 0 || share === 1 ? 0 : 1)} %`;
}

/** Milliseconds since 1970 as "2026-01-31 12:00:00". */
export function time(ms) {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

/** A stretch of milliseconds in the largest unit that fits. */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${ms} ms`;
  const units = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];
  const [size, unit] = units.find(([one]) => ms >= one);
  return `${Math.floor(ms / size)} ${unit}`;
}
