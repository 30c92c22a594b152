// Who asks: a token or a password, where the controller wants to know and no certificate says it.

import { forgetToken, isSignedIn, keepToken } from "./credentials.js";
import { h, show } from "./dom.js";
import { login, mechanismsOffered } from "./scram.js";

const place = document.getElementById("sign-in");
const leave = document.getElementById("sign-out");

/** Ask the reader who he is; `onSigned` is called when he has said it. `why`: the controller's refusal. */
export async function askWho(why, onSigned) {
  document.getElementById("main").hidden = true;
  leave.hidden = !isSignedIn();
  if (!place.hidden) {
    say(why);
    return;
  }
  place.hidden = false;
  const mechanisms = await mechanismsOffered().catch(() => []);
  show(
    place,
    h("h2", { tabindex: -1 }, "Who asks?"),
    h("p", { role: "alert" }, why),
    h("p", { class: "quiet" }, "A certificate of your browser is shown by itself. What you type here stays in this tab, and is gone when it is closed."),
    h("div", { class: "forms" }, tokenForm(onSigned), mechanisms.length > 0 && passwordForm(mechanisms, onSigned)),
  );
  place.querySelector("h2").focus();
}

/** The reader has been let in. */
export function letIn() {
  const main = document.getElementById("main");
  const wasAsked = !place.hidden;
  place.hidden = true;
  place.replaceChildren();
  main.hidden = false;
  // The form that had the focus is gone: who goes by keyboard or by ear goes on at the verdict.
  if (wasAsked) main.focus();
  leave.hidden = !isSignedIn();
}

/** Let the reader have the token forgotten, and with it all that was shown for it. */
export function startSignOut() {
  leave.addEventListener("click", () => {
    forgetToken();
    location.reload();
  });
}

function say(why) {
  show(place.querySelector("[role=alert]"), why);
}

function tokenForm(onSigned) {
  return form("By token", [field("Token", { name: "token", type: "password", autocomplete: "off" })], (given) => {
    keepToken(given.get("token").trim());
    onSigned();
  });
}

function passwordForm(mechanisms, onSigned) {
  const fields = [
    field("User", { name: "user", autocomplete: "username", autocapitalize: "none", spellcheck: "false" }),
    field("Password", { name: "password", type: "password", autocomplete: "current-password" }),
    h("label", { hidden: mechanisms.length < 2 }, "Mechanism", h("select", { name: "mechanism" }, mechanisms.map((one) => h("option", {}, one)))),
  ];
  return form("By password", fields, async (given) => {
    keepToken(await login(given.get("mechanism"), given.get("user"), given.get("password")));
    onSigned();
  });
}

function field(words, properties) {
  return h("label", {}, words, h("input", { required: true, maxlength: 8000, ...properties }));
}

function form(title, fields, onGiven) {
  const made = h("form", {}, h("h3", {}, title), fields, h("button", { type: "submit" }, `Sign in ${title.toLowerCase()}`));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = new FormData(made);
    const button = made.querySelector("button");
    button.disabled = true;
    try {
      await onGiven(given);
    } catch (error) {
      say(error.message);
    }
    button.disabled = false;
  });
  return made;
}
