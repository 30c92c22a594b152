// The timeline: a picture of what happened, and a slider that takes the page to any moment of it and back to now.

import { askOfNow } from "./api.js";
import { counted, h, show, time } from "./dom.js";
import { lanes, ticks } from "./lanes.js";
import { moment, onMoment, setMoment } from "./moment.js";

/** While one drags, so long between two questions. */
const DRAG_MS = 350;
/** Between two looks at what is new; more where the answer takes long: so many times that. */
const PAUSE_MS = 15_000;
const SHARE = 20;
/** Steps of the slider from end to end. */
const STEPS = 500;
/** Events that are listed; the picture has all of them. */
const LISTED = 100;

const section = document.getElementById("timeline");
/** Above the verdict, wherever the reader has scrolled to, while it is not of now. */
const banner = document.getElementById("then");
const slider = h("input", { type: "range", class: "slider", "aria-label": "Moment that the page shows" });
const place = {};
/** The part of the history that is shown, when it came, and the parts after it that were shown before. */
let part = null;
let cameMs = 0;
let later = [];
/** Where the slider stands: milliseconds since 1970; null: now. */
let shownMs = null;
let timer = 0;
/** Whether what is new is asked for, or will be when the timer ends. */
let isKept = false;
let waiting = 0;
let asking = null;

/** Make the section; nothing is asked yet. */
export function startTimeline() {
  build();
  slider.addEventListener("input", drag);
  slider.addEventListener("change", land);
  document.getElementById("return").addEventListener("click", returnToNow);
  onMoment(() => {
    if (moment() === null) shownMs = null;
    draw();
  });
}

/** Have what is new drawn again and again, as long as somebody looks. To be called with each answer about now. */
export function keepTimeline() {
  if (!isKept) refresh();
}

function build() {
  const button = (name, text, listener) => {
    place[name] = h("button", { type: "button", class: "plain" }, text);
    place[name].addEventListener("click", listener);
    return place[name];
  };
  place.shown = h("p", { class: "shown-moment", role: "status" });
  place.picture = h("div", { class: "lanes" });
  place.ticks = h("div", { class: "ticks", "aria-hidden": "true" });
  place.list = h("ol", { class: "events" });
  place.count = h("summary", {});
  place.rest = h("p", { class: "small quiet" });
  place.list.addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (chosen) go(Number(chosen.dataset.ms), chosen.dataset.at);
  });
  show(section, h("div", { class: "heading" }));
  section.firstChild.append(
    h("h2", {}, "Timeline"),
    place.shown,
    h(
      "div",
      { class: "steps" },
      button("earlier", "Earlier", () => turn(part.earlier)),
      button("before", "Event before", () => step(-1)),
      button("after", "Event after", () => step(1)),
      button("later", "Later", () => turn(null)),
      button("now", "Now", returnToNow),
    ),
  );
  section.append(place.picture, h("div", { class: "slide" }, slider, place.ticks), place.rest, h("details", { class: "event-list" }, place.count, place.list));
}

async function refresh() {
  clearTimeout(timer);
  isKept = !later.length && !document.hidden;
  if (!isKept) return;
  const begun = performance.now();
  await look({});
  if (isKept) timer = setTimeout(refresh, Math.max(PAUSE_MS, SHARE * (performance.now() - begun)));
}

/** Ask for a part and draw it; false where there is none. */
async function look(parameters) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  try {
    part = await askOfNow("/v1/answers/timeline", parameters, signal);
    cameMs = performance.now();
  } catch (error) {
    if (signal.aborted) return false;
    isKept = ![401, 403].includes(error.status);
    section.classList.toggle("absent", part === null);
    if (part === null) {
      section.hidden = !isKept;
      show(place.shown, `No timeline this time: ${error.message}`);
    } else show(place.shown, `The timeline is as it was at ${time(endMs())}: ${error.message}`);
    return false;
  } finally {
    if (!signal.aborted) section.ariaBusy = "false";
  }
  section.classList.remove("absent");
  section.hidden = part.begin_ms === null;
  draw();
  return true;
}

/** To the part before this one, or back to the one after it. */
async function turn(before) {
  const left = part;
  if (before === null) {
    part = later.pop();
    if (!later.length) await refresh();
    draw();
  } else if (await look({ before })) {
    later.push(left);
  }
  draw();
}

/** The end of what is shown, by the clock of who tells it. */
function endMs() {
  const isLive = part.now_ms !== null && !later.length;
  return isLive ? Math.max(part.end_ms, part.now_ms + performance.now() - cameMs) : part.end_ms;
}

function draw() {
  if (part === null || part.begin_ms === null) return;
  const begin = part.begin_ms;
  const end = Math.max(endMs(), begin + 1);
  const at = shownMs === null ? end : Math.min(Math.max(shownMs, begin), end);
  slider.min = String(begin);
  slider.max = String(end);
  slider.step = String(Math.max(1, Math.floor((end - begin) / STEPS)));
  if (document.activeElement !== slider || shownMs === null) slider.value = String(at);
  slider.setAttribute("aria-valuetext", shownMs === null ? place.now.textContent : `${time(shownMs)} UTC`);
  show(place.shown, shownMs === null ? `From ${time(begin)} to ${part.now_ms === null ? "the end of the log" : "now"}` : `The cluster as it was at ${time(shownMs)}`);
  section.classList.toggle("then", shownMs !== null);
  show(place.picture, lanes(part, begin, end, shownMs === null ? null : at));
  show(place.ticks, ticks(begin, end));
  show(place.rest, part.left_out ? `${counted(part.left_out, "partition")} that had trouble before are drawn from the next record about them on.` : "");
  drawEvents();
  place.earlier.disabled = part.earlier === null;
  place.later.hidden = !later.length;
  place.now.textContent = part.now_ms === null ? "End" : "Now";
  banner.hidden = shownMs === null;
  show(banner.firstElementChild, shownMs === null ? null : `Not now: the cluster as it was at ${time(shownMs)} UTC`);
  banner.lastElementChild.textContent = part.now_ms === null ? "To the end" : "Back to now";
  place.now.disabled = shownMs === null && !later.length;
  place.before.disabled = next(-1) === undefined;
  place.after.disabled = next(1) === undefined;
}

function drawEvents() {
  const listed = part.events.slice(-LISTED).reverse();
  const rest = part.events.length - listed.length;
  show(place.count, `${counted(part.events.length, "event")}${rest ? `, the last ${listed.length} listed` : ""}`);
  show(
    place.list,
    listed.map((event) => h(
      "li",
      { "data-key": `${event.offset}${event.kind}` },
      h("button", { type: "button", "data-ms": event.time_ms, "data-at": event.offset + 1, title: "Show the cluster behind it" }, h("span", { class: "number quiet" }, time(event.time_ms)), ` ${event.text}`),
    )),
  );
}

/** The next event before or after what is shown. */
function next(direction) {
  const { events } = part;
  if (direction > 0) return shownMs === null ? undefined : events.find((event) => event.time_ms > shownMs);
  return events.findLast((event) => shownMs === null || event.time_ms < shownMs);
}

function step(direction) {
  const event = next(direction);
  if (event) go(event.time_ms, String(event.offset + 1));
}

function drag() {
  shownMs = Number(slider.value);
  if (isEnd()) shownMs = null;
  draw();
  if (!waiting) waiting = setTimeout(land, DRAG_MS);
}

function isEnd() {
  return !later.length && Number(slider.value) + Number(slider.step) > Number(slider.max);
}

/** Show what the slider stands at. */
function land() {
  clearTimeout(waiting);
  waiting = 0;
  go(shownMs, shownMs === null ? null : new Date(shownMs).toISOString());
}

function go(ms, at) {
  shownMs = ms;
  if (at === moment()) draw();
  else setMoment(at);
}

function returnToNow() {
  shownMs = null;
  if (later.length) {
    part = later[0];
    later = [];
  }
  go(null, null);
  refresh();
}
