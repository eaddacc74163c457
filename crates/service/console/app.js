// The console: sign-in, navigation and the state of the connection. Each view has a URL: `#/name/argument?query`.

import { Problem, change, get, whenSignedOut } from './api.js';
import { everySecond, fill, h, local, setClock, setText, span } from './dom.js';
import { isFullOperator } from './events.js';
import { feed, on } from './feed.js';
import { nowView } from './now.js';

/** @import {Session} from 'notbefore-api' */
/** @import {Act} from './act.js' */
/**
 * @typedef {{ argument: string, query: Record<string, string>, setQuery: (changes: Record<string, string>) => void,
 *   signal: AbortSignal, session: Session, act: (what: Act) => void }} Context
 * @typedef {{ element: HTMLElement, title: string }} Shown
 * @typedef {(context: Context) => Promise<Shown>} AsyncView
 * @typedef {(context: Context) => Shown | Promise<Shown>} View
 */

/** The views; the code of all but the first is loaded when it is needed. @type {Record<string, View>} */
const VIEWS = {
  now: nowView,
  events: async (context) => (await import('./event.js')).eventView(context),
  fleet: async (context) => (await import('./fleet.js')).fleetView(context),
  vms: async (context) => (await import('./vm.js')).vmView(context),
  hosts: async (context) =>
    (await import('./hosts.js'))[context.argument ? 'hostView' : 'hostsView'](context),
  operations: async (context) => (await import('./operation.js')).operationView(context),
  history: async (context) => (await import('./history.js')).historyView(context),
  nodes: async (context) => (await import('./nodes.js')).nodesView(context),
  tokens: async (context) => (await import('./admin.js')).tokensView(context),
  audit: async (context) => (await import('./admin.js')).auditView(context),
};
const NAV = [
  { name: 'now', text: 'Now' },
  { name: 'fleet', text: 'Fleet' },
  { name: 'hosts', text: 'Hosts', isForOperators: true },
  { name: 'history', text: 'History' },
  { name: 'nodes', text: 'Nodes', isForOperators: true },
  { name: 'tokens', text: 'Tokens', isForOperators: true },
  { name: 'audit', text: 'Audit', isForOperators: true },
];

/** Tells the other tabs of this browser which token it is signed in with; none after a sign-out. */
const sessions = new BroadcastChannel('notbefore-session');
/** Remembers that this browser has signed in. */
const SIGNED_IN = 'notbefore-signed-in';

const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const main = byId('main'),
  banner = byId('banner'),
  feedText = byId('feed');
/** @type {Session | null} */
let session = null;
let view = new AbortController();

/** @param {string} hash */
function parse(hash) {
  const [path, text = ''] = hash.replace(/^#\/?/, '').split('?');
  const [name, ...rest] = path.split('/');
  const decode = (/** @type {string} */ part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return {
    name: name || 'now',
    argument: decode(rest.join('/')),
    query: Object.fromEntries(new URLSearchParams(text)),
  };
}

async function route() {
  if (!session) return;
  const { name, argument, query } = parse(location.hash);
  view.abort();
  view = new AbortController();
  const { signal } = view;
  const setQuery = (/** @type {Record<string, string>} */ changes) => {
    const next = new URLSearchParams(
      Object.entries({ ...parse(location.hash).query, ...changes }).filter(([, value]) => value),
    );
    history.replaceState(null, '', location.hash.split('?')[0] + (next.size ? `?${next}` : ''));
  };
  document.querySelectorAll('#nav a').forEach((link) => {
    if (link.getAttribute('href') === `#/${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  });
  /** @type {Context} */
  const context = {
    argument,
    query,
    setQuery,
    signal,
    session,
    act: async (what) => {
      try {
        const { openAct } = await import('./act.js');
        if (session) openAct(what, session);
      } catch (error) {
        fill(main, h('div', { class: 'view' }, h('h1', {}, 'This cannot be done now'), problemText(error)));
      }
    },
  };
  let shown;
  try {
    const isForOperators = NAV.some((one) => one.name === name && one.isForOperators);
    if (isForOperators && !isFullOperator(session))
      throw new Problem(0, 'role', 'Only operators on / can see this page.');
    const make = Object.hasOwn(VIEWS, name) ? VIEWS[name] : null;
    shown = make
      ? await make(context)
      : {
          title: 'Not found',
          element: h(
            'div',
            { class: 'view' },
            h('h1', {}, 'There is no such page'),
            h('p', {}, h('a', { href: '#/now' }, 'Go to Now')),
          ),
        };
  } catch (error) {
    shown = {
      title: 'Error',
      element: h(
        'div',
        { class: 'view' },
        h('h1', {}, 'This page cannot be shown'),
        problemText(error),
        h('p', {}, h('button', { type: 'button', onclick: route }, 'Try again')),
      ),
    };
  }
  if (signal.aborted) return;
  fill(main, shown.element);
  document.title = `${shown.title} – notbefore`;
  if (document.activeElement === document.body || document.activeElement === main)
    main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** @param {unknown} error */
export function problemText(error) {
  const problem = error instanceof Problem ? error : new Problem(0, 'error', String(error));
  return h(
    'p',
    { class: 'problem', role: 'alert' },
    problem.message,
    problem.status > 0 && h('span', { class: 'quiet' }, ` (${problem.code})`),
  );
}

// The text is announced; the time, which changes each second, is not.
const bannerText = h('span', { role: 'alert' }),
  bannerAge = h('span', { 'aria-hidden': 'true' }),
  tryNow = h(
    'button',
    { type: 'button', class: 'small', onclick: () => feed.post({ kind: 'wake' }) },
    'Try now',
  );
banner.append(bannerText, bannerAge, ' ', tryNow);

function drawFeed() {
  const { state, since } = feed;
  const texts = {
    connecting: 'Connecting…',
    live: 'Live',
    stale: `Stale since ${local(since)}`,
    'signed-out': 'Signed out',
  };
  feedText.dataset.state = state;
  setText(feedText, texts[state]);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  feedText.title = `${state === 'live' ? 'The page shows every change as it happens. ' : ''}Times are in ${zone}.`;
  banner.hidden = state !== 'stale' || !session;
  if (banner.hidden) return setText(bannerText, '');
  setText(
    bannerText,
    `No connection to the service. What you see is from ${local(since)} or earlier. Trying again…`,
  );
  setText(bannerAge, ` (${span(Date.now() - since)})`);
}

/** Shows the page for the session. @param {Session} signedIn */
function enter(signedIn) {
  session = signedIn;
  localStorage.setItem(SIGNED_IN, 'yes');
  setClock(session.now);
  const isOperator = isFullOperator(session);
  fill(
    byId('nav'),
    NAV.filter((one) => isOperator || !one.isForOperators).map(({ name, text }) =>
      h('a', { href: `#/${name}` }, text),
    ),
  );
  const roles = session.grants.map(({ role, path }) => `${role} on ${path}`).join(', ');
  fill(
    byId('who'),
    h(
      'span',
      {},
      session.token,
      h('span', { class: 'quiet role', title: roles }, ` ${roles.replace(' on /', '')}`),
    ),
    h('button', { type: 'button', class: 'small', onclick: signOut }, 'Sign out'),
  );
  byId('top').hidden = false;
  sessions.postMessage(session.token);
  feed.start(session.token);
  void route();
}

async function signOut() {
  try {
    await change('DELETE', '/v1/session');
  } catch (error) {
    // Only the service ends a session; without its answer the cookie is still valid.
    if (!(error instanceof Problem && error.status === 401)) {
      const again = h('button', { type: 'button', onclick: signOut }, 'Sign out');
      const text = h(
        'div',
        { class: 'view' },
        h('h1', {}, 'You are still signed in'),
        problemText(error),
        again,
      );
      view.abort();
      return fill(main, text);
    }
  }
  localStorage.removeItem(SIGNED_IN);
  sessions.postMessage('');
  location.hash = '';
  location.reload();
}

/** @param {unknown} [error] */
function showSignIn(error) {
  session = null;
  if (!error || (error instanceof Problem && error.status === 401)) localStorage.removeItem(SIGNED_IN);
  view.abort();
  document.querySelectorAll('dialog').forEach((dialog) => dialog.close());
  byId('top').hidden = true;
  banner.hidden = true;
  const input = h('input', {
    type: 'password',
    id: 'token',
    name: 'token',
    autocomplete: 'current-password',
    required: true,
    spellcheck: 'false',
    'aria-describedby': 'token-help',
  });
  const message = h('div', {}, error ? problemText(error) : null);
  const form = h(
    'form',
    {
      class: 'sign-in',
      onsubmit: async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        try {
          await signIn({ token: input.value });
        } catch (failed) {
          fill(message, problemText(failed));
          input.select();
        }
      },
    },
    h('h1', {}, h('img', { src: '/console/icon.svg', alt: '', width: 36, height: 36 }), ' notbefore'),
    h('label', { for: 'token' }, 'Token'),
    input,
    message,
    h('button', { type: 'submit', class: 'primary' }, 'Sign in'),
    h(
      'p',
      { class: 'quiet', id: 'token-help' },
      'The first token is in the file operator.token of the service’s data directory. Or run ',
      h('code', {}, 'notbefore console'),
      ' there and open its link.',
    ),
  );
  document.title = 'Sign in – notbefore';
  fill(main, form);
  input.focus();
}

/** Signs in and shows the page. What an earlier session has shown goes. @param {{ token?: string, code?: string }} body */
async function signIn(body) {
  /** @type {Session} */
  const signedIn = await change('POST', '/v1/sign-in', body, { isOnce: true });
  localStorage.setItem(SIGNED_IN, 'yes');
  if (!feed.isStarted) return enter(signedIn);
  sessions.postMessage(signedIn.token);
  location.reload();
}

/** The code of a sign-in link, if the address is one. */
const linkCode = () => new URLSearchParams(location.hash.slice(1)).get('code');

/**
 * Signs in by a link. Any page can send a browser here with a link of its own, so an existing session is not replaced
 * without a question.
 * @param {string} code
 */
async function useLink(code) {
  // The code works once: it must not stay in the address bar or the history.
  history.replaceState(null, '', '/');
  let known = session;
  try {
    known ??= await currentSession();
  } catch (error) {
    // Without an answer there may be a session.
    if (!(error instanceof Problem && error.status === 401)) return showSignIn(error);
  }
  if (!known) return signIn({ code }).catch(showSignIn);
  view.abort();
  const own = known;
  const stay = () => (session ? void route() : enter(own));
  const message = h('div', {});
  const use = () =>
    signIn({ code }).catch((error) =>
      fill(message, problemText(error), h('p', {}, 'Your session is unchanged.')),
    );
  fill(
    main,
    h(
      'div',
      { class: 'sign-in' },
      h('h1', {}, 'Sign in by this link?'),
      h('p', {}, `You are signed in as ${known.token}. The link replaces that, perhaps by another token.`),
      message,
      h('button', { type: 'button', class: 'primary', onclick: stay }, `Stay signed in as ${known.token}`),
      h('button', { type: 'button', onclick: use }, 'Use the link'),
    ),
  );
  document.title = 'Sign in by this link? – notbefore';
  main.focus();
}

/** The session of this browser, if there is one. @returns {Promise<Session | null>} */
async function currentSession() {
  // Scripts cannot see the cookie. Without a sign-in here there is none, and a request would only be refused.
  return localStorage.getItem(SIGNED_IN) ? get('/v1/session') : null;
}

async function start() {
  whenSignedOut(() => {
    if (session) showSignIn(new Problem(401, 'session_ended', 'Your session has ended. Sign in again.'));
  });
  sessions.onmessage = ({ data }) => {
    if (session && data !== session.token) location.reload();
  };
  addEventListener('hashchange', () => {
    const code = linkCode();
    if (code) void useLink(code);
    else void route();
  });
  const forever = new AbortController().signal;
  on(
    'state',
    () => {
      drawFeed();
      if (feed.state === 'signed-out' && session) void get('/v1/session').catch(() => {});
    },
    forever,
  );
  everySecond(drawFeed);
  const code = linkCode();
  if (code) return useLink(code);
  try {
    const known = await currentSession();
    if (known) enter(known);
    else showSignIn();
  } catch (error) {
    showSignIn(error instanceof Problem && error.status === 401 ? undefined : error);
  }
}

void start();
