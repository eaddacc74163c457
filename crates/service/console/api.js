// Calls of the API under /v1. The browser adds the session's cookie. A change is sent with an Idempotency-Key, and again
// with the same key if its outcome is unknown, so that it takes effect once.

/** @import {Problem as ProblemBody} from 'notbefore-api' */

/** Attempts of a change whose outcome is unknown, and the pauses between them in milliseconds. */
const RETRY_PAUSES = [500, 1000, 2000, 4000];
/** Items per page of a list. */
const PAGE = 1000;

/** An error of the API, or a lost connection (status 0). */
export class Problem extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
    /** Whether the change may have taken effect. */
    this.isOutcomeUnknown = false;
  }
}

/** Called when the service says that the session has ended. @type {() => void} */
let onSignedOut = () => {};
/** @param {() => void} callback */
export const whenSignedOut = (callback) => {
  onSignedOut = callback;
};

/** @param {string} path @param {RequestInit} init */
async function send(path, init) {
  let response;
  try {
    response = await fetch(path, { credentials: 'same-origin', cache: 'no-store', ...init });
  } catch {
    throw new Problem(0, 'unreachable', 'The service does not answer.');
  }
  if (response.ok) return response;
  /** @type {Partial<ProblemBody>} */
  let body = {};
  try {
    body = await response.json();
  } catch {
    /* Not a problem document: the status says enough. */
  }
  if (response.status === 401 && !path.endsWith('/sign-in')) onSignedOut();
  const problem = new Problem(
    response.status,
    body.code ?? 'unknown',
    body.detail ?? `The service answered ${response.status}.`,
  );
  return Promise.reject(Object.assign(problem, { retryAfter: Number(response.headers.get('Retry-After')) }));
}

/** @template T @param {string} path @param {AbortSignal} [signal] @returns {Promise<T>} */
export async function get(path, signal) {
  return (await send(path, { signal })).json();
}

/** The text of a response. @param {string} path @returns {Promise<string>} */
export async function getText(path) {
  return (await send(path, {})).text();
}

/**
 * Reads a list page by page; calls `onPage` with all items so far.
 * @template T
 * @param {string} path
 * @param {{ max?: number, onPage?: (items: T[]) => void, signal?: AbortSignal }} [options]
 * @returns {Promise<{ items: T[], revision: number, isCut: boolean }>}
 */
export async function list(path, { max = 20_000, onPage, signal } = {}) {
  /** @type {T[]} */
  const items = [];
  let revision = -1,
    cursor = '';
  for (;;) {
    const join = path.includes('?') ? '&' : '?';
    const url = `${path}${join}limit=${Math.min(PAGE, max)}${cursor}`;
    /** @type {{ items: T[], next?: string | null, revision: number }} */
    const page = await get(url, signal);
    items.push(...page.items);
    if (revision < 0) revision = page.revision;
    onPage?.(items);
    if (!page.next || items.length >= max) return { items, revision, isCut: Boolean(page.next) };
    cursor = `&cursor=${encodeURIComponent(page.next)}`;
  }
}

/**
 * Sends a change. Repeats it under the same key while its outcome is unknown.
 * @template T
 * @param {'POST' | 'DELETE'} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {{ key?: string, onRetry?: (problem: Problem) => void, isOnce?: boolean }} [options]
 * @returns {Promise<T>}
 */
export async function change(method, path, body, { key = newKey(), onRetry, isOnce = false } = {}) {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key };
  const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
  /** Whether an earlier attempt may have taken effect. */
  let wasUnknown = false;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await send(path, init);
      if (response.status === 204) return /** @type {any} */ (null);
      return await response.json().catch(() => {
        throw new Problem(0, 'unreachable', 'The answer did not arrive completely.');
      });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      // A server error without a code is the answer of a proxy, which does not know what happened.
      const isOfProxy = error.status >= 500 && error.code === 'unknown';
      const isUnknown = error.status === 0 || error.code === 'outcome_unknown' || isOfProxy;
      const isBusy = error.status === 429 || error.status === 503;
      wasUnknown ||= isUnknown;
      if (!(isUnknown || isBusy) || isOnce || attempt === RETRY_PAUSES.length) {
        error.isOutcomeUnknown = isUnknown || (wasUnknown && isBusy);
        throw error;
      }
      onRetry?.(error);
      const asked = /** @type {any} */ (error).retryAfter * 1000 || 0;
      await new Promise((done) => setTimeout(done, Math.min(10_000, Math.max(asked, RETRY_PAUSES[attempt]))));
    }
  }
}

/** A new Idempotency-Key. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * A path of the API with its parts encoded.
 * @param {TemplateStringsArray} texts
 * @param {...(string | number)} parts
 */
export function at(texts, ...parts) {
  return texts.reduce((path, text, n) => path + encodeURIComponent(String(parts[n - 1])) + text);
}
