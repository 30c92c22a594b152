// The picture of a timeline: lanes of spans, each placed by its begin and end.

import { counted, h, time } from "./dom.js";

/** Names of lanes in the answer, their titles, and how bad what is in them is. */
const LANES = [
  ["epoch", "Controller", "calm"],
  ["broker", "Brokers away", "doubtful"],
  ["offline", "Without a leader", "bad"],
  ["under_min_isr", "Under min ISR", "bad"],
  ["reassignment", "Reassignments", "new"],
];
/** Rows of a lane; what finds no room in them lies over the last one. */
const ROWS_MAX = 6;
/** From so much of the width on a span has its text in it. */
const WORDS_FROM = 0.12;
/** An odd number: where there is no room every other one is left out. */
const TICKS = 5;

/** The lanes of a part of the history; `at`: where the page stands, null: at the end. */
export function lanes(part, begin, end, at) {
  const share = (ms) => Math.min(Math.max((ms - begin) / (end - begin), 0), 1);
  const stands = at === null ? null : share(at);
  return LANES.map(([name, title, kind]) => lane(part.spans.filter((span) => span.lane === name), title, kind, share, end, stands));
}

/** `stands`: where in it the page stands, from 0 to 1; null: at the end. */
function lane(spans, title, kind, share, end, stands) {
  const rows = packed(spans.filter((span) => span.to_ms === null || share(span.to_ms) > 0), end);
  const said = spans.slice(-8).map((span) => `${span.text}, ${extent(span)}`).join("; ");
  return h(
    "div",
    { class: "lane", "data-key": title },
    h("h3", {}, title),
    h(
      "div",
      { class: "lane-rows", role: "img", "aria-label": `${title}: ${spans.length ? `${counted(spans.length, "span")}. ${said}` : "nothing"}` },
      rows.length ? rows.map((row) => h("div", { class: "lane-row" }, row.map((span) => bar(span, kind, share, end)))) : h("div", { class: "lane-row" }),
      stands !== null && h("div", { class: "cursor", style: { left: `calc(var(--thumb) / 2 + ${stands} * (100% - var(--thumb)))` } }),
    ),
  );
}

/** Spans in rows in which none lies over another. */
function packed(spans, end) {
  const rows = [];
  const ends = [];
  for (const span of spans) {
    let row = ends.findIndex((one) => one <= span.from_ms);
    if (row < 0) row = Math.min(rows.length, ROWS_MAX - 1);
    (rows[row] ??= []).push(span);
    ends[row] = Math.max(ends[row] ?? 0, span.to_ms ?? end);
  }
  return rows;
}

function bar(span, kind, share, end) {
  const from = share(span.from_ms);
  const width = share(span.to_ms ?? end) - from;
  const tone = span.lane === "epoch" ? `calm tone-${span.node === null ? 0 : span.node % 3}` : kind;
  const words = span.lane === "epoch" ? span.node ?? "?" : span.partitions || span.node;
  return h(
    "span",
    { class: `span ${tone}${span.to_ms === null ? " lasting" : ""}`, title: `${span.text}, ${extent(span)}`, style: { left: `${from * 100}%`, width: `${width * 100}%` } },
    width >= WORDS_FROM && h("span", {}, String(words)),
  );
}

function extent(span) {
  return `${time(span.from_ms)} to ${span.to_ms === null ? "now" : time(span.to_ms)}`;
}

/** Times below the slider. */
export function ticks(begin, end) {
  const isLong = end - begin > 86_400_000;
  return Array.from({ length: TICKS }, (_, place) => {
    const text = time(begin + ((end - begin) * place) / (TICKS - 1));
    return h("span", {}, isLong ? text.slice(5, 16) : text.slice(11));
  });
}
