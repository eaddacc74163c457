// One event: its state, who has read it, what its guests see, and its trail of facts.

import { Problem, at, get, getText } from './api.js';
import { copyButton, count, everySecond, fill, h, relative, setText, time } from './dom.js';
import {
  CAUSES,
  SYMBOLS,
  actorText,
  factText,
  linked,
  may,
  shortScope,
  stageBadge,
  when,
  whenTitle,
} from './events.js';
import { feed, on } from './feed.js';

/** @import {Event, Fact, Session} from 'notbefore-api' */
/** @import {AsyncView} from './app.js' */

const VERSIONS = [
  '2024-07-09',
  '2020-07-01',
  '2019-08-01',
  '2019-04-01',
  '2019-01-01',
  '2017-11-01',
  '2017-08-01',
  '2017-03-01',
];
/** Most VMs that are listed. */
const VMS_MAX = 200;

/**
 * @param {Event} event
 * @param {Session} session
 * @returns {('approve' | 'start' | 'cancel' | 'complete' | 'retry')[]}
 */
function verbs(event, session) {
  if (event.ended_at) return [];
  const isOperator = may(session, 'operator', event.scope),
    isTenant = may(session, 'tenant', event.scope);
  const scheduled = event.status === 'Scheduled',
    isStarted = event.status === 'Started';
  /** @type {[boolean, any][]} */
  const all = [
    [scheduled && !event.approved && isTenant, 'approve'],
    [scheduled && isOperator, 'start'],
    [!isStarted && (isOperator || (isTenant && event.source === 'User')), 'cancel'],
    [isStarted && isOperator, 'complete'],
    [isStarted && isOperator && Boolean(event.exec?.commands.some((one) => one.state === 'failed')), 'retry'],
  ];
  return all.filter(([is]) => is).map(([, verb]) => verb);
}

/** @type {Record<string, string>} */
const VERB_TEXTS = {
  approve: 'Approve…',
  start: 'Start now…',
  cancel: 'Cancel…',
  complete: 'Complete…',
  retry: 'Retry…',
};

/** @type {AsyncView} */
export async function eventView({ argument, session, signal, act }) {
  /** @type {Event} */
  let event = await get(at`/v1/events/${argument}`, signal);
  const head = h('div', {}),
    facts = h('dl', { class: 'facts' }),
    seen = h('div', {}),
    trail = h('ol', { class: 'trail' }),
    countdown = h('p', { class: 'countdown' });
  const guest = guestPart(event);

  function draw() {
    fill(
      head,
      h(
        'div',
        { class: 'title-row' },
        h(
          'h1',
          {},
          h('span', { 'aria-hidden': 'true' }, `${SYMBOLS[event.type] ?? ''} `),
          `${event.type} of ${event.resources.length === 1 ? event.resources[0].name : count(event.resources.length, 'VM')}`,
        ),
        stageBadge(event),
        h(
          'div',
          { class: 'actions' },
          verbs(event, session).map((verb) =>
            h(
              'button',
              {
                type: 'button',
                class: verb === 'approve' ? 'primary' : '',
                onclick: () => act({ kind: 'event', event, verb }),
              },
              VERB_TEXTS[verb],
            ),
          ),
        ),
      ),
    );
    tick();
    const rows = /** @type {[string, any][]} */ ([
      ['Waits for', event.waits_for && linked(event.waits_for)],
      ['Announced', time(event.scheduled_at)],
      ['Not before', event.not_before && time(event.not_before)],
      ['Started', event.started_at && time(event.started_at)],
      ['Ended', event.ended_at && time(event.ended_at)],
      ['Cause', `${CAUSES[event.cause] ?? event.cause} (${event.source})`],
      [
        'Scope',
        h('a', { href: `#/fleet?scope=${encodeURIComponent(event.scope)}` }, shortScope(event.scope)),
      ],
      ['Update domain', String(event.update_domain)],
      ['Approved', event.approved ? approver(event) : 'no'],
      ['Interruption', event.duration_seconds < 0 ? 'unknown' : `${event.duration_seconds} s`],
      ['Description', event.description || '–'],
      ['Driver', event.driver],
      ['Event', h('code', {}, event.id)],
      ['Operation', h('a', { href: `#/operations/${event.operation}` }, h('code', {}, event.operation))],
    ]).filter(([, value]) => value);
    fill(facts, rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]).flat());
    const reads = new Map((event.seen ?? []).map((one) => [one.vm, one]));
    const failed = new Map((event.exec?.commands ?? []).map((one) => [one.vm, one]));
    fill(
      seen,
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['VM', 'Host', 'First read', 'api-version', event.exec ? 'Command' : null]
              .filter(Boolean)
              .map((name) => h('th', {}, name)),
          ),
        ),
        h(
          'tbody',
          {},
          event.resources.slice(0, VMS_MAX).map((one) => {
            const read = reads.get(one.vm),
              command = failed.get(one.vm) ?? failed.get(one.name);
            return h(
              'tr',
              {},
              h('td', {}, h('a', { href: `#/vms/${one.vm}` }, one.name)),
              h('td', {}, one.host ?? '–'),
              h(
                'td',
                {},
                read?.first_read_at ? time(read.first_read_at) : h('span', { class: 'bad' }, 'not read'),
              ),
              h('td', {}, read?.api_version ?? ''),
              event.exec && h('td', {}, command ? command.state : ''),
            );
          }),
        ),
      ),
      event.resources.length > VMS_MAX &&
        h('p', { class: 'quiet' }, `and ${event.resources.length - VMS_MAX} more`),
    );
    fill(
      trail,
      (event.trail ?? []).map((/** @type {Fact} */ fact) =>
        h(
          'li',
          {},
          time(fact.at),
          h('span', {}, factText(fact)),
          h('span', { class: 'quiet' }, `by ${actorText(fact)}`),
        ),
      ),
    );
  }
  const tick = () => {
    setText(countdown, when(event));
    countdown.title = whenTitle(event);
  };

  async function reload() {
    try {
      event = await get(at`/v1/events/${argument}`, signal);
    } catch {
      return;
    }
    if (!signal.aborted) {
      draw();
      void guest.reload();
    }
  }
  on(
    'facts',
    (/** @type {Fact[]} */ all) => {
      if (all.some((fact) => fact.event === event.id)) void reload();
    },
    signal,
  );
  // After a gap, facts are missing.
  on('state', () => feed.state === 'live' && void reload(), signal);
  // What an event waits for changes with other events of its scope; the live list has it.
  on(
    'events',
    () => {
      const live = feed.events.get(event.id);
      if (live && (live.waits_for !== event.waits_for || live.status !== event.status)) void reload();
    },
    signal,
  );
  addEventListener('acted', () => void reload(), { signal });
  const stop = everySecond(tick);
  signal.addEventListener('abort', stop);
  draw();
  const element = h(
    'div',
    { class: 'view event' },
    head,
    countdown,
    h(
      'div',
      { class: 'columns' },
      h('section', { 'aria-label': 'Event' }, h('h2', {}, 'Event'), facts),
      h(
        'div',
        {},
        h('section', { 'aria-label': 'VMs' }, h('h2', {}, 'Who has read it'), seen),
        h('section', { 'aria-label': 'Trail' }, h('h2', {}, 'Trail'), trail),
      ),
    ),
    guest.element,
  );
  return {
    element,
    title: `${event.type} of ${event.resources
      .map((one) => one.name)
      .slice(0, 2)
      .join(', ')}`,
  };
}

/** @param {Event} event */
function approver(event) {
  const fact = event.trail?.find((one) => one.type === 'EventApproved');
  return fact ? `by ${actorText(fact)}, ${relative(Date.parse(fact.at))}` : 'yes';
}

/** What a guest reads, at each api-version. @param {Event} event */
function guestPart(event) {
  const vm = event.resources[0];
  const select = h(
    'select',
    { id: 'version' },
    VERSIONS.map((version) => h('option', { value: version }, version)),
  );
  const document = h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Document' });
  const curl = h('code', { class: 'curl' });
  const command = () =>
    `curl -H Metadata:true "http://169.254.169.254/metadata/scheduledevents?api-version=${select.value}"`;
  async function reload() {
    setText(curl, command());
    if (!vm) return;
    try {
      setText(
        document,
        JSON.stringify(
          JSON.parse(await getText(at`/v1/vms/${vm.vm}/document?api-version=${select.value}`)),
          null,
          2,
        ),
      );
    } catch (error) {
      const isGone = error instanceof Problem && error.status === 404;
      setText(document, isGone ? 'The VM is no longer in the fleet.' : /** @type {Error} */ (error).message);
    }
  }
  select.addEventListener('change', reload);
  void reload();
  const element = h(
    'section',
    { 'aria-label': 'What the guest sees' },
    h('h2', {}, 'What the guest sees now'),
    h('p', {}, h('label', { for: 'version' }, 'api-version '), select, vm ? ` as read by ${vm.name}` : ''),
    h('p', { class: 'copy' }, curl, copyButton(command)),
    document,
  );
  return { element, reload };
}
