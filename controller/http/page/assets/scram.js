// A login by SCRAM over HTTP (RFC 5802, RFC 7804): the password goes nowhere, and a server that does not know its keys is
// found out.

/** Mechanisms that this can, with their hashes; that by which `quorate users set` makes passwords comes first. */
const HASHES = { "SCRAM-SHA-256": ["SHA-256", 32], "SCRAM-SHA-512": ["SHA-512", 64] };
/** Kafka's least, and more than this would keep a browser busy. */
const ITERATIONS_MIN = 4096;
const ITERATIONS_MAX = 1_000_000;

const encoder = new TextEncoder();

/** Thrown where a login does not come about, with a sentence that says why. */
export class LoginFailure extends Error {}

/** The mechanisms by which one may log in at this controller, of those that this can; none where nobody may. */
export async function mechanismsOffered() {
  const answer = await fetch("/v1/login", { cache: "no-store" });
  const offered = answer.headers.get("WWW-Authenticate") ?? "";
  return Object.keys(HASHES).filter((mechanism) => offered.includes(mechanism));
}

/** The token of a login. Throws `LoginFailure`. */
export async function login(mechanism, user, password) {
  if (!crypto.subtle) throw new LoginFailure("A browser logs in over https, or on the machine itself, only.");
  if (!user || !/^[\x01-\x7f]+$/.test(user)) throw new LoginFailure("A user who logs in has a name of ASCII characters.");
  const nonce = toBase64(crypto.getRandomValues(new Uint8Array(24)));
  const firstBare = `n=${user.replaceAll("=", "=3D").replaceAll(",", "=2C")},r=${nonce}`;
  const begun = await exchange(`${mechanism} data="${toBase64(encoder.encode(`n,,${firstBare}`))}"`);
  const { sid, text: serverFirst } = message(begun.headers.get("WWW-Authenticate"), begun);
  const withoutProof = `c=biws,r=${attribute(serverFirst, "r")}`;
  const keys = await keysOf(mechanism, password, serverFirst, nonce);
  const signed = encoder.encode(`${firstBare},${serverFirst},${withoutProof}`);
  const proof = xored(keys.client, await hmac(keys.hash, keys.stored, signed));
  const last = `${withoutProof},p=${toBase64(proof)}`;
  const ended = await exchange(`${mechanism} sid=${sid}, data="${toBase64(encoder.encode(last))}"`);
  if (!ended.ok) throw new LoginFailure("The login failed: the user or its password is wrong.");
  const { text: serverFinal } = message(ended.headers.get("Authentication-Info"), ended);
  if (attribute(serverFinal, "v") !== toBase64(await hmac(keys.hash, keys.server, signed))) {
    throw new LoginFailure("The controller does not know the password's keys: it is not the one that it should be.");
  }
  return (await ended.json()).token;
}

async function keysOf(mechanism, password, serverFirst, nonce) {
  const [hash, size] = HASHES[mechanism];
  const iterations = Number(attribute(serverFirst, "i"));
  const whole = attribute(serverFirst, "r");
  if (!whole.startsWith(nonce) || whole === nonce) throw new LoginFailure("The controller's answer is to somebody else.");
  if (!(iterations >= ITERATIONS_MIN && iterations <= ITERATIONS_MAX)) throw new LoginFailure(`The controller asks for ${iterations} iterations.`);
  const key = await crypto.subtle.importKey("raw", encoder.encode(password), "PBKDF2", false, ["deriveBits"]);
  const salt = fromBase64(attribute(serverFirst, "s"));
  const salted = new Uint8Array(await crypto.subtle.deriveBits({ name: "PBKDF2", hash, salt, iterations }, key, size * 8));
  const client = await hmac(hash, salted, encoder.encode("Client Key"));
  const stored = new Uint8Array(await crypto.subtle.digest(hash, client));
  return { hash, client, stored, server: await hmac(hash, salted, encoder.encode("Server Key")) };
}

async function exchange(authorization) {
  return fetch("/v1/login", { headers: { Authorization: authorization }, cache: "no-store" });
}

function message(header, answer) {
  const data = /\bdata="([^"]*)"/.exec(header ?? "");
  if (!data) throw new LoginFailure(answer.status === 429 ? "Too many logins failed: try again in some seconds." : "The login failed: the user or its password is wrong.");
  return { sid: /\bsid=([\w.~-]+)/.exec(header)?.[1] ?? "", text: new TextDecoder().decode(fromBase64(data[1])) };
}

function attribute(text, name) {
  return text.split(",").find((part) => part.startsWith(`${name}=`))?.slice(2) ?? "";
}

async function hmac(hash, key, data) {
  const made = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", made, data));
}

function xored(one, other) {
  return one.map((byte, place) => byte ^ other[place]);
}

function toBase64(bytes) {
  return btoa(String.fromCharCode(...bytes));
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
