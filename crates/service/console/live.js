// Live events: a list, kept up to date by the stream of facts. Runs once per browser, in the shared worker.
//
// The list has a revision, and the stream continues from it. A fact says which scope changed. The events of that scope
// are then listed again, because an event's state depends on others of its scope. Many changed scopes at once cost one
// list of everything. At rest there is one open stream and no request.
//
// If the stream ends, it continues from the last position. If the service no longer has that position (410), everything
// is listed again. Until then the state is `stale`, with the time of the last sign of life.

import { Problem, list } from './api.js';

/** @import {Event, Fact} from 'notbefore-api' */
/** @typedef {'connecting' | 'live' | 'stale' | 'signed-out'} FeedState */
/** What tabs say. @typedef {{ kind: 'hello', token: string } | { kind: 'wake' } | { kind: 'bye' }} TabMessage */
/**
 * @typedef {{ kind: 'snapshot', events: Event[], isCut: boolean }
 *   | { kind: 'change', put: Event[], gone: string[] }
 *   | { kind: 'facts', facts: Fact[] }
 *   | { kind: 'state', state: FeedState, since: number }
 *   | { kind: 'alive' }} FeedMessage
 */

/** Most live events that are held. */
const EVENTS_MAX = 5000;
/** More changed scopes than this are listed in one request. */
const SCOPES_ONE_BY_ONE = 4;
/** How long facts are collected before the list is read: facts of one commit arrive together. */
const COLLECT_MS = 40;
/** Shortest time between two lists of everything. */
const LIST_ALL_MS = 1000;
/** The stream says something every 15 seconds; a longer silence means that the connection is lost. */
const SILENCE_MS = 40_000;
const PAUSE_MIN_MS = 500,
  PAUSE_MAX_MS = 4000;

/** @param {number} ms */
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class Live {
  /** @param {(message: FeedMessage) => void} emit */
  constructor(emit) {
    this.emit = emit;
    /** @type {Map<string, Event>} */
    this.events = new Map();
    this.isCut = false;
    /** @type {FeedState} */
    this.state = 'connecting';
    this.since = Date.now();
    /** The position in the stream; empty before the first list. */
    this.position = '';
    /** @type {Set<string>} */
    this.changedScopes = new Set();
    this.listAllAt = 0;
    /** @type {AbortController | null} */
    this.run = null;
    /** The run that lists changed scopes. @type {AbortSignal | null} */
    this.collecting = null;
    /** The token of the session. */
    this.token = '';
    /** The last sign of life. */
    this.heardAt = Date.now();
    /** Whether a changed scope could not be listed. */
    this.isBehind = false;
    /** Whether the stream is open. */
    this.isHearing = false;
  }

  /** What a new tab needs to know. @returns {FeedMessage[]} */
  snapshot() {
    const events = [...this.events.values()];
    /** @type {FeedMessage[]} */
    const messages = [{ kind: 'state', state: this.state, since: this.since }];
    if (this.position) messages.push({ kind: 'snapshot', events, isCut: this.isCut });
    return messages;
  }

  /** Starts for a session, unless it runs already. Nothing of another session is kept. @param {string} token */
  startFor(token) {
    if (this.run && this.token === token && this.state !== 'signed-out') return;
    this.stop();
    this.run = new AbortController();
    this.token = token;
    this.position = '';
    this.events = new Map();
    this.changedScopes.clear();
    this.isBehind = false;
    this.isHearing = false;
    this.setState('connecting');
    void this.follow(this.run.signal);
  }

  stop() {
    this.run?.abort();
    this.run = null;
  }

  /** Tries again now, for example when the browser is online again. */
  wake() {
    this.skipPause?.();
  }

  /** @param {FeedState} state @param {number} [since] */
  setState(state, since = Date.now()) {
    if (this.state === state) return;
    this.state = state;
    this.since = since;
    this.emit({ kind: 'state', state, since });
  }

  /** Live is a page that hears everything and has listed everything. */
  settle() {
    if (this.isHearing && !this.isBehind) this.setState('live');
  }

  /** @param {AbortSignal} signal */
  async follow(signal) {
    let pause = PAUSE_MIN_MS;
    const onHeard = () => {
      this.heardAt = Date.now();
      pause = PAUSE_MIN_MS;
      this.isHearing = true;
      this.settle();
    };
    while (!signal.aborted) {
      try {
        if (!this.position) await this.listAll(signal);
        await this.stream(signal, onHeard);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && error.status === 401) {
          this.setState('signed-out');
          return;
        }
        if (error instanceof Problem && error.status === 410) this.position = '';
      }
      if (signal.aborted) return;
      this.isHearing = false;
      this.setState('stale', this.heardAt);
      await Promise.race([
        sleep(pause * (0.5 + Math.random())),
        new Promise((done) => {
          this.skipPause = () => done(null);
        }),
      ]);
      pause = Math.min(PAUSE_MAX_MS, pause * 2);
    }
  }

  /** @param {AbortSignal} signal */
  async listAll(signal) {
    this.listAllAt = Date.now();
    this.changedScopes.clear();
    const { items, revision, isCut } = await list('/v1/events?sort=time', { max: EVENTS_MAX, signal });
    const events = /** @type {Event[]} */ (items);
    this.events = new Map(events.map((event) => [event.id, event]));
    this.isBehind = false;
    this.isCut = isCut;
    if (!this.position) this.position = String(revision);
    this.emit({ kind: 'snapshot', events, isCut });
  }

  /** Reads the stream until it ends. @param {AbortSignal} signal @param {() => void} onHeard */
  async stream(signal, onHeard) {
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    signal.addEventListener('abort', abort);
    let silence = setTimeout(abort, SILENCE_MS);
    try {
      const response = await fetch('/v1/stream', {
        headers: { 'Last-Event-ID': this.position },
        credentials: 'same-origin',
        cache: 'no-store',
        signal: attempt.signal,
      });
      if (!response.ok || !response.body) throw new Problem(response.status, 'stream', 'no stream');
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(abort, SILENCE_MS);
        onHeard();
        const messages = (rest + value).split('\n\n');
        rest = messages.pop() ?? '';
        const facts = messages.map((message) => this.read(message)).filter((fact) => fact !== null);
        if (facts.length > 0) this.take(facts, signal);
      }
    } finally {
      clearTimeout(silence);
      signal.removeEventListener('abort', abort);
      attempt.abort();
    }
  }

  /** Reads a message of the stream. @param {string} message @returns {Fact | null} */
  read(message) {
    let data = '';
    for (const line of message.split('\n')) {
      if (line.startsWith('id:')) this.position = line.slice(3).trim();
      else if (line.startsWith('data:')) data += line.slice(5).trim();
    }
    return data ? JSON.parse(data) : null;
  }

  /** @param {Fact[]} facts @param {AbortSignal} signal */
  take(facts, signal) {
    this.emit({ kind: 'facts', facts });
    for (const fact of facts) {
      if (fact.event && fact.scope) this.changedScopes.add(fact.scope);
      // A part of an operation waits for its other parts.
      if (fact.operation && fact.event) {
        for (const event of this.events.values()) {
          if (event.operation === fact.operation) this.changedScopes.add(event.scope);
        }
      }
    }
    if (this.changedScopes.size > 0 && this.collecting !== signal) {
      this.collecting = signal;
      void this.refresh(signal).finally(() => {
        if (this.collecting === signal) this.collecting = null;
      });
    }
  }

  /** Lists the changed scopes again until none is left. @param {AbortSignal} signal */
  async refresh(signal) {
    while (this.changedScopes.size > 0 && !signal.aborted) {
      await sleep(COLLECT_MS);
      if (signal.aborted) return;
      const scopes = [...this.changedScopes];
      this.changedScopes.clear();
      try {
        if (scopes.length > SCOPES_ONE_BY_ONE) {
          await sleep(this.listAllAt + LIST_ALL_MS - Date.now());
          if (signal.aborted) return;
          await this.listAll(signal);
        } else {
          await Promise.all(scopes.map((scope) => this.listScope(scope, signal)));
        }
        this.isBehind = false;
        this.settle();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && error.status === 401) {
          this.stop();
          return this.setState('signed-out');
        }
        this.isBehind = true;
        this.setState('stale', this.heardAt);
        scopes.forEach((scope) => this.changedScopes.add(scope));
        await sleep(PAUSE_MIN_MS);
      }
    }
  }

  /** @param {string} scope @param {AbortSignal} signal */
  async listScope(scope, signal) {
    /** @type {Event[]} */
    let put = [];
    try {
      put = (await list(`/v1/events?scope=${encodeURIComponent(scope)}`, { max: EVENTS_MAX, signal })).items;
    } catch (error) {
      // The scope is gone, and its events with it.
      if (!(error instanceof Problem && error.status === 404)) throw error;
    }
    const kept = new Set(put.map((event) => event.id));
    const gone = [...this.events.values()]
      .filter((event) => sameScope(event.scope, scope) && !kept.has(event.id))
      .map((event) => event.id);
    gone.forEach((id) => this.events.delete(id));
    put.forEach((event) => this.events.set(event.id, event));
    this.emit({ kind: 'change', put, gone });
  }
}

/** Facts have paths in lower case. @param {string} one @param {string} two */
const sameScope = (one, two) => one.toLowerCase() === two.toLowerCase();
