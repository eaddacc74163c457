// One operation: its progress, what it waits for, and its parts, each an event of a scope.

import { at, get } from './api.js';
import { fill, h, time } from './dom.js';
import { CAUSES, linked, may, shortScope, vmLinks } from './events.js';
import { coalesced, feed, on } from './feed.js';

/** @import {Fact, Operation, OperationTarget, Session} from 'notbefore-api' */
/** @import {AsyncView} from './app.js' */
/** @typedef {'start' | 'cancel' | 'complete' | 'retry'} Verb */

/** Most parts that are listed. */
const PARTS_MAX = 200;

/** @type {Record<Verb, string>} */
const VERB_TEXTS = { start: 'Start now…', cancel: 'Cancel…', complete: 'Complete…', retry: 'Retry…' };

/** What the caller may do with an operation. @param {Operation} operation @param {Session} session @returns {Verb[]} */
export function verbsOf(operation, session) {
  const isOperator = operation.targets.every((target) => may(session, 'operator', target.scope));
  if (operation.state === 'closed' || !isOperator) return [];
  const { started, waiting, approved } = operation.progress;
  /** @type {[boolean, Verb][]} */
  const all = [
    [waiting + approved > 0, 'start'],
    [started === 0, 'cancel'],
    [started > 0, 'complete'],
    [operation.host_command?.state === 'failed', 'retry'],
  ];
  return all.filter(([is]) => is).map(([, verb]) => verb);
}

/** The buttons of an operation. @param {Operation} operation @param {Session} session @param {(what: any) => void} act */
export const operationButtons = (operation, session, act) =>
  verbsOf(operation, session).map((verb) =>
    h(
      'button',
      { type: 'button', class: 'small', onclick: () => act({ kind: 'operation', operation, verb }) },
      VERB_TEXTS[verb],
    ),
  );

/** @type {AsyncView} */
export async function operationView({ argument, session, signal, act }) {
  /** @type {Operation} */
  let operation = await get(at`/v1/operations/${argument}`, signal);
  const head = h('div', {}),
    facts = h('dl', { class: 'facts' }),
    parts = h('div', {});

  const row = (/** @type {OperationTarget} */ target) =>
    h(
      'tr',
      {},
      h('td', {}, h('a', { href: `#/events/${target.event}` }, target.event.slice(0, 8))),
      h('td', {}, shortScope(target.scope)),
      h('td', {}, String(target.update_domain)),
      h('td', { class: 'wrap' }, vmLinks(target.resources)),
      h('td', { class: target.failed ? 'bad' : '' }, target.failed ? 'failed' : target.status),
      h('td', { class: 'wrap' }, target.refused ?? target.started_because ?? ''),
    );

  function draw() {
    const { progress, host, host_command: command } = operation;
    const what = `${CAUSES[operation.cause] ?? operation.cause}${host ? ` of ${host}` : ''}`;
    fill(
      head,
      h(
        'div',
        { class: 'title-row' },
        h('h1', {}, what),
        h('span', { class: 'badge' }, operation.cancelled ? 'cancelled' : operation.state),
        h('div', { class: 'actions' }, operationButtons(operation, session, act)),
      ),
    );
    const rows = /** @type {[string, any][]} */ ([
      ['Waits for', operation.waits_for && linked(operation.waits_for)],
      ['Requested', h('span', {}, time(operation.requested_at), ` by ${operation.by}`)],
      ['Not before', operation.not_before && time(operation.not_before)],
      [
        'Events',
        `${progress.events}: ${progress.waiting} waiting, ${progress.approved} approved, ${progress.started} started, ${progress.ended} ended`,
      ],
      ['Host', host && h('a', { href: `#/hosts/${encodeURIComponent(host)}` }, host)],
      ['Command of the host', command && command.state],
      ['Operation', h('code', {}, operation.id)],
    ]).filter(([, value]) => value);
    fill(
      facts,
      rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
    );
    const heads = ['Event', 'Scope', 'UD', 'VMs', 'Status', ''];
    const more = operation.targets.length - PARTS_MAX;
    fill(
      parts,
      h(
        'table',
        { tabindex: 0 },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            heads.map((text) => h('th', {}, text)),
          ),
        ),
        h('tbody', {}, operation.targets.slice(0, PARTS_MAX).map(row)),
      ),
      more > 0 && h('p', { class: 'quiet' }, `and ${more} more`),
    );
  }

  async function reload() {
    try {
      operation = await get(at`/v1/operations/${argument}`, signal);
    } catch {
      return;
    }
    if (!signal.aborted) draw();
  }
  const again = coalesced(reload);
  const isOwn = (/** @type {Fact} */ fact) => fact.operation === operation.id;
  on('facts', (/** @type {Fact[]} */ all) => all.some(isOwn) && again(), signal);
  on('state', () => feed.state === 'live' && again(), signal);
  addEventListener('acted', again, { signal });
  draw();
  const element = h(
    'div',
    { class: 'view' },
    head,
    h('section', { 'aria-label': 'Operation' }, facts),
    h('section', { 'aria-label': 'Parts' }, h('h2', {}, 'Events'), parts),
  );
  return { element, title: 'Operation' };
}
