// The token that goes with every question: kept for this tab only, and gone when it is closed.

const NAME = "quorate.token";

/** The header that says who asks; nothing where nobody has said it. */
export function authorization() {
  const token = sessionStorage.getItem(NAME);
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

/** Whether there is a token. */
export function isSignedIn() {
  return sessionStorage.getItem(NAME) !== null;
}

/** Keep a token for this tab. */
export function keepToken(token) {
  sessionStorage.setItem(NAME, token);
}

/** Forget it. */
export function forgetToken() {
  sessionStorage.removeItem(NAME);
}
