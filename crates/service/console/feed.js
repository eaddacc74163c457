// The tab's copy of the live events. It comes from the shared worker, or from this tab's own stream where a browser has
// no shared workers.

import { get } from './api.js';
import { HOUR, everySecond, now, oncePerFrame } from './dom.js';
import { Live } from './live.js';

/** @import {Event, Fact, EventStatus} from 'notbefore-api' */
/** @import {FeedMessage, FeedState, TabMessage} from './live.js' */

/** How long ended events stay on the timeline. */
const PAST_MS = HOUR;
/** The worker says something every 15 seconds. */
const SILENT_MS = 60_000;
/** Most ended events that are read at the start. */
const PAST_MAX = 500;

class Feed extends EventTarget {
  constructor() {
    super();
    /** @type {Map<string, Event>} */
    this.events = new Map();
    /** Events that ended within the hour. @type {Map<string, Event>} */
    this.past = new Map();
    /** @type {FeedState} */
    this.state = 'connecting';
    this.since = Date.now();
    this.hasList = false;
    this.isCut = false;
    /**
     * Ended events by their facts, until their list arrives.
     * @type {Map<string, { at: string, status: EventStatus }>}
     */
    this.ended = new Map();
    /** Tells the views, at most once a frame. */
    this.draw = oncePerFrame(() => this.dispatchEvent(new CustomEvent('events')));
    this.isStarted = false;
    /** When the worker said something. */
    this.toldAt = Date.now();
    /** @type {(message: TabMessage) => void} */
    this.post = () => {};
  }

  /** Starts for the session of a token. @param {string} token */
  start(token) {
    this.isStarted = true;
    if (typeof SharedWorker === 'function') this.useWorker(token);
    else this.useOwnStream();
    this.post({ kind: 'hello', token });
    addEventListener('online', () => this.post({ kind: 'wake' }));
    void this.readPast();
  }

  /** @param {string} token */
  useWorker(token) {
    const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy('notbefore', {
      createScriptURL: () => '/console/worker.js',
    });
    const worker = new SharedWorker(policy ? policy.createScriptURL('') : '/console/worker.js', {
      type: 'module',
      name: 'notbefore',
    });
    worker.port.onmessage = ({ data }) => this.take(data);
    this.post = (message) => worker.port.postMessage(message);
    // Its files could not be loaded.
    worker.onerror = () => {
      this.useOwnStream();
      this.post({ kind: 'hello', token });
    };
    addEventListener('pagehide', () => this.post({ kind: 'bye' }));
    // A page that comes back from the browser's cache may belong to an earlier session.
    addEventListener('pageshow', (event) => event.persisted && location.reload());
    everySecond(() => {
      // A worker that died says nothing.
      if (this.state === 'live' && Date.now() - this.toldAt > SILENT_MS) {
        this.take({ kind: 'state', state: 'stale', since: this.toldAt });
      }
    });
  }

  useOwnStream() {
    const live = new Live((message) => this.take(message));
    this.post = (message) => {
      if (message.kind === 'wake') live.wake();
      else if (message.kind === 'hello') live.startFor(message.token);
    };
  }

  /** @param {FeedMessage} message */
  take(message) {
    this.toldAt = Date.now();
    if (message.kind === 'alive') return;
    if (message.kind === 'state') {
      this.state = message.state;
      this.since = message.since;
      this.dispatchEvent(new CustomEvent('state'));
    } else if (message.kind === 'facts') {
      message.facts.forEach((fact) => this.takeFact(fact));
      this.dispatchEvent(new CustomEvent('facts', { detail: message.facts }));
    } else {
      const before = this.events;
      if (message.kind === 'snapshot') {
        this.events = new Map(message.events.map((event) => [event.id, event]));
        this.isCut = message.isCut;
        this.hasList = true;
      } else {
        message.gone.forEach((id) => this.end(before.get(id)));
        message.gone.forEach((id) => this.events.delete(id));
        message.put.forEach((event) => this.events.set(event.id, event));
      }
      if (before !== this.events)
        before.forEach((event, id) => {
          if (!this.events.has(id)) this.end(event);
        });
      this.draw();
    }
  }

  /** @param {Fact} fact */
  takeFact(fact) {
    const status =
      fact.type === 'EventCompleted' ? 'Completed' : fact.type === 'EventCancelled' ? 'Cancelled' : null;
    if (status && fact.event) this.ended.set(fact.event, { at: fact.at, status });
  }

  /** Moves an event to the past. @param {Event | undefined} event */
  end(event) {
    const known = event && this.ended.get(event.id);
    if (!event || !known) return;
    this.ended.delete(event.id);
    this.past.set(event.id, { ...event, status: known.status, ended_at: known.at, waits_for: null });
  }

  /** Forgets what ended long ago. Returns whether something was. */
  prune() {
    const from = now() - PAST_MS,
      before = this.past.size;
    for (const [id, one] of this.past) if (Date.parse(one.ended_at ?? '') < from) this.past.delete(id);
    for (const [id, one] of this.ended) if (Date.parse(one.at) < from) this.ended.delete(id);
    return this.past.size < before;
  }

  async readPast() {
    const since = new Date(now() - PAST_MS).toISOString();
    try {
      const page = await get(`/v1/history?order=newest&limit=${PAST_MAX}&since=${since}`);
      /** @type {{ items: Event[] }} */ (page).items.forEach((event) => {
        if (!this.past.has(event.id)) this.past.set(event.id, event);
      });
      this.draw();
    } catch {
      /* The past is a convenience; the live events are shown without it. */
    }
  }
}

export const feed = new Feed();

/**
 * Calls a function at each event of a kind until the view closes.
 * @param {'events' | 'state' | 'facts'} kind
 * @param {(detail: any) => void} callback
 * @param {AbortSignal} signal
 */
export function on(kind, callback, signal) {
  feed.addEventListener(kind, (event) => callback(/** @type {CustomEvent} */ (event).detail), { signal });
}

/** Shortest time between two reads of a view. */
const AGAIN_MS = 500;

/**
 * Runs one at a time, and once more if it was asked meanwhile: many changes at once cost few requests, and an older
 * answer never replaces a newer one.
 * @param {() => Promise<void>} work
 */
export function coalesced(work) {
  let isRunning = false,
    isAsked = false;
  return async () => {
    isAsked = true;
    if (isRunning) return;
    isRunning = true;
    while (isAsked) {
      isAsked = false;
      await work().catch(() => {});
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
    isRunning = false;
  };
}
