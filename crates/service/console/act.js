// Actions on VMs, hosts and events. Each shows its plan first. A request that is sent again has the same
// Idempotency-Key, so that it takes effect once; a request that was changed has another.

import { Problem, at, change, get, newKey } from './api.js';
import { count, fill, h, local, relative, setText, utc } from './dom.js';
import { CAUSES, localTimes, shortScope } from './events.js';

/** @import {Cluster, Event, HostsPlan, Operation, OperationTarget, Plan, PlannedEvent, Session, Token, Vm} from 'notbefore-api' */
/**
 * @typedef {{ kind: 'vms', vms: string[], cause: string }
 *   | { kind: 'hosts', hosts: string[], verb: string }
 *   | { kind: 'event', event: Event, verb: 'approve' | 'start' | 'cancel' | 'complete' | 'retry' }
 *   | { kind: 'operation', operation: Operation, verb: 'start' | 'cancel' | 'complete' | 'retry' }
 *   | { kind: 'start-vm', vm: Vm }
 *   | { kind: 'hand-over', cluster: Cluster }
 *   | { kind: 'revoke', token: Token }} Act
 */

/** Most VMs or hosts in one action. */
export const BULK_MAX = 100;
/** Most minutes that the form takes: about a year. */
const MINUTES_MAX = 500_000;
/** Most events of a plan that are listed. */
const PLAN_ROWS = 30;

/** What a tenant may do with its VMs. */
const USER_CAUSES = ['user-restart', 'user-redeploy', 'deletion'];
const VM_CAUSES = [
  'user-restart',
  'user-redeploy',
  'deletion',
  'eviction',
  'rebalance',
  'host-freeze',
  'host-reboot',
  'host-redeploy',
  'live-migration',
  'predicted-failure',
  'host-failure',
];
/** @type {Record<string, string>} */
const HOST_VERBS = {
  'maintain/reboot': 'Maintenance: reboot',
  'maintain/freeze': 'Maintenance: freeze',
  'maintain/redeploy': 'Maintenance: redeploy',
  'maintain/live-migration': 'Maintenance: live migration',
  degraded: 'Degraded: redeploy the VMs',
  failed: 'Failed: reboot the VMs now',
};

/** A problem of one host after others were scheduled. */
class HostsProblem extends Problem {
  /** @param {Problem} problem @param {string} host @param {string[]} done */
  constructor(problem, host, done) {
    const text = `Host ${host}: ${problem.message} Already scheduled: ${done.join(', ')}.`;
    super(problem.status, problem.code, text);
    this.isOutcomeUnknown = problem.isOutcomeUnknown;
    this.done = done.map((name) => name.toLowerCase());
  }
}

/** Opens the dialog of an action. @param {Act} what @param {Session} session */
export function openAct(what, session) {
  if (what.kind === 'event') return eventDialog(what.event, what.verb);
  if (what.kind === 'operation') return operationDialog(what.operation, what.verb);
  if (what.kind === 'start-vm') return startDialog(what.vm);
  if (what.kind === 'hand-over') return handOverDialog(what.cluster);
  if (what.kind === 'revoke') return revokeDialog(what.token, session);
  return planDialog(what, session);
}

/**
 * A dialog that closes by Escape, and removes itself.
 * @param {string | Node} title
 * @param {...any} children
 */
function dialog(title, ...children) {
  const id = `dialog-${newKey()}`;
  const element = h('dialog', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
  element.addEventListener('close', () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

/** @param {HTMLDialogElement} box @param {HTMLButtonElement} close */
function keepOpenWhileSending(box, close) {
  let isSending = false;
  box.addEventListener('cancel', (event) => isSending && event.preventDefault());
  return (/** @type {boolean} */ is) => {
    isSending = is;
    close.disabled = is;
  };
}

/** @param {unknown} error */
function failure(error) {
  const problem = error instanceof Problem ? error : new Problem(0, 'error', String(error));
  if (!problem.isOutcomeUnknown)
    return h(
      'p',
      { class: 'problem', role: 'alert' },
      `${problem.message}${problem.status ? ` (${problem.code})` : ''}`,
    );
  return h(
    'p',
    { class: 'problem', role: 'alert' },
    'It is not known whether this took effect: the service did not answer. Send it again: it is sent under the same key and happens once.',
  );
}

/** The time that the form gives: a local time, or minutes from now. @param {string} minutes @param {string} time */
function chosenTime(minutes, time) {
  if (time !== '') return { not_before: new Date(time).toISOString() };
  if (minutes === '') return {};
  const number = Number(minutes);
  if (!Number.isInteger(number) || number < 0 || number > MINUTES_MAX)
    throw new Problem(0, 'form', `${minutes} is no number of minutes from 0 to ${MINUTES_MAX}.`);
  return { in_seconds: number * 60 };
}

/**
 * Plan first, then the action. Every change of the form takes the plan back, so that only what is shown can be sent.
 * @param {Extract<Act, { kind: 'vms' | 'hosts' }>} what
 * @param {Session} session
 */
function planDialog(what, session) {
  const isHosts = what.kind === 'hosts';
  const names = isHosts ? what.hosts : what.vms;
  const isOperator = isHosts || session.grants.some((grant) => grant.role === 'operator');
  const input = h('textarea', {
    id: 'act-names',
    rows: Math.min(6, Math.max(2, names.length)),
    required: true,
    spellcheck: 'false',
    value: names.join('\n'),
    placeholder: isHosts ? 'one host a line' : 'one VM a line: its name, or the end of its path',
  });
  const choices = isHosts
    ? Object.entries(HOST_VERBS)
    : VM_CAUSES.filter((cause) => isOperator || USER_CAUSES.includes(cause)).map(
        (cause) => /** @type {[string, string]} */ ([cause, CAUSES[cause]]),
      );
  const chosen = isHosts ? what.verb : what.cause;
  const select = h(
    'select',
    { id: 'act-what' },
    choices.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
  );
  const minutes = h('input', { type: 'number', id: 'act-minutes', min: 0, max: MINUTES_MAX, step: 1 });
  const time = h('input', { type: 'datetime-local', id: 'act-time' });
  const duration = h('input', { type: 'number', id: 'act-duration', min: 0, max: 86_400, step: 1 });
  const description = h('input', { type: 'text', id: 'act-description', maxlength: 512 });
  const planArea = h('div', { class: 'plan', 'aria-live': 'polite' });
  const message = h('div', {});
  const confirm = h('button', { type: 'submit', class: 'primary', disabled: true }, 'Schedule');
  const close = h('button', { type: 'button', onclick: () => box.close() }, 'Close');
  const field = (/** @type {string} */ text, /** @type {HTMLElement} */ control) =>
    h('div', { class: 'stacked' }, h('label', { for: control.id }, text), control);
  const fields = h(
    'fieldset',
    { class: 'plain' },
    field(isHosts ? 'Hosts' : 'VMs', input),
    field('Action', select),
    h(
      'div',
      { class: 'side-by-side' },
      field('Not before, in minutes from now (usual notice if empty)', minutes),
      field('or at a time, in your time zone', time),
    ),
    isOperator &&
      h(
        'div',
        { class: 'side-by-side' },
        field('Description that guests read (the usual text if empty)', description),
        field('Expected interruption in seconds', duration),
      ),
  );
  const form = h(
    'form',
    { method: 'dialog' },
    fields,
    h('h3', {}, 'Plan'),
    planArea,
    message,
    h('div', { class: 'buttons' }, close, confirm),
  );
  const title = h('span', {});
  const box = dialog(title, form);
  // What is being sent cannot be left: its result would be lost.
  const setSending = keepOpenWhileSending(box, close);
  /** What the shown plan sends. @type {Planned | null} */
  let planned = null;
  let asked = 0;
  let timer = 0;

  const listed = () => [...new Set(input.value.split(/[\n,]+/).map((name) => name.trim()))].filter(Boolean);
  const actionName = () => choices.find(([value]) => value === select.value)?.[1] ?? '';

  /** Takes the plan back: nothing can be sent until there is another one. */
  function withdraw() {
    asked += 1;
    planned = null;
    confirm.disabled = true;
    fill(confirm, 'Schedule');
    planArea.classList.add('old');
  }

  async function plan() {
    withdraw();
    const turn = asked;
    const list = listed();
    setText(title, list.length === 1 ? `${actionName()}: ${shortScope(list[0])}` : actionName());
    const show = (/** @type {Node[]} */ ...nodes) => {
      planArea.classList.remove('old');
      fill(planArea, nodes);
    };
    if (list.length === 0)
      return show(h('p', { class: 'quiet' }, `Name the ${isHosts ? 'hosts' : 'VMs'} first.`));
    if (list.length > BULK_MAX)
      return show(h('p', { class: 'problem' }, `${list.length} are named; at most ${BULK_MAX} at a time.`));
    try {
      const options = {
        ...chosenTime(minutes.value, time.value),
        ...(description.value && { description: description.value }),
        ...(duration.value !== '' && { duration_seconds: Number(duration.value) }),
      };
      const made = isHosts
        ? await planHosts(list, select.value, options)
        : await planVms(list, select.value, options);
      if (turn !== asked) return;
      show(...made.shown);
      planned = made;
      confirm.disabled = false;
      confirm.classList.toggle('danger', made.isHarsh);
      fill(confirm, !made.isHarsh ? 'Schedule' : select.value === 'deletion' ? 'Delete now' : 'Start now');
    } catch (error) {
      if (turn === asked) show(failure(error));
    }
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const sending = planned;
    if (!sending) return;
    planned = null;
    fields.disabled = true;
    confirm.disabled = true;
    setSending(true);
    fill(confirm, 'Sending…');
    fill(message);
    try {
      const operations = await sending.send(() => fill(confirm, 'Sending again…'));
      setSending(false);
      showDone(form, box, operations);
    } catch (error) {
      setSending(false);
      fields.disabled = false;
      fill(message, failure(error));
      if (error instanceof Problem && error.isOutcomeUnknown) {
        planned = sending;
        confirm.disabled = false;
        fill(confirm, 'Send again');
      } else {
        // Something has changed since the plan: show the plan of now, without the hosts that are done.
        const done = new Set(error instanceof HostsProblem ? error.done : []);
        input.value = listed()
          .filter((name) => !done.has(name.toLowerCase()))
          .join('\n');
        void plan();
      }
    }
  });
  const later = () => {
    withdraw();
    fill(message);
    clearTimeout(timer);
    timer = setTimeout(plan, 250);
  };
  minutes.addEventListener('input', () => {
    time.value = '';
  });
  time.addEventListener('input', () => {
    minutes.value = '';
  });
  fields.addEventListener('input', later);
  void plan();
  if (names.length === 0) input.focus();
  else select.focus();
}

/**
 * A plan that is shown, and what sends exactly it; a repetition has the same key.
 * @typedef {{ shown: Node[], isHarsh: boolean, send: (onRetry: () => void) => Promise<Operation[]> }} Planned
 */

/** Whether nothing will happen. @param {Plan} plan */
const isAdvisory = (plan) => plan.cause === 'rebalance';

/** Whether it starts at once: guests get no notice. @param {Plan} plan */
const startsAtOnce = (plan) =>
  (!plan.not_before && !isAdvisory(plan)) || plan.events.some((event) => event.starts_because);

/** @param {string[]} list @param {string} cause @param {object} options @returns {Promise<Planned>} */
async function planVms(list, cause, options) {
  const vms = await Promise.all(list.map((name) => /** @type {Promise<Vm>} */ (get(at`/v1/vms/${name}`))));
  // The VMs as they are now: if one changes, the service refuses the action.
  const body = { cause, vms: vms.map((vm) => vm.id), revisions: vms.map((vm) => vm.revision), ...options };
  /** @type {Plan} */
  const made = await change('POST', '/v1/events', { ...body, dry_run: true });
  const busy = vms.filter((vm) => vm.events.length > 0);
  const note =
    busy.length > 0 &&
    `Already has events: ${busy
      .slice(0, 5)
      .map((vm) => `${vm.name} (${vm.events.length})`)
      .join(', ')}${busy.length > 5 ? ` and ${busy.length - 5} more` : ''}.`;
  const key = newKey();
  return {
    shown: [planText(made), ...(note ? [h('p', { class: 'warn' }, note)] : [])],
    isHarsh: startsAtOnce(made),
    send: async (onRetry) => [await change('POST', '/v1/events', body, { key, onRetry })],
  };
}

/** @param {string[]} hosts @param {string} what @param {object} options @returns {Promise<Planned>} */
async function planHosts(hosts, what, options) {
  const [verb, type] = what.split('/');
  const action = { ...(type && { type }), ...options };
  /** @type {HostsPlan} */
  const made = await change('POST', '/v1/hosts/plan', { hosts, verb, action });
  const waits = made.waits.map((wait) => {
    const scopes = wait.scopes.map(shortScope).join(', ');
    return h('p', {}, `${wait.host} waits for ${wait.waits_for.join(', ')}: they share ${scopes}.`);
  });
  const plans = made.hosts.map((one) =>
    h('div', {}, made.hosts.length > 1 && h('h4', {}, one.host ?? ''), planText(one)),
  );
  const key = newKey();
  return {
    shown: [...plans, ...waits],
    isHarsh: made.hosts.some(startsAtOnce),
    send: async (onRetry) => {
      /** @type {Operation[]} */
      const done = [];
      for (const one of made.hosts) {
        // The VMs of the plan, and no others.
        const vms = one.events
          .filter((event) => !event.refused)
          .flatMap((event) => event.resources.map((resource) => resource.vm));
        const path = at`/v1/hosts/${one.host ?? ''}/${verb}`;
        try {
          done.push(
            await change('POST', path, { ...action, vms }, { key: `${key}-${done.length}`, onRetry }),
          );
        } catch (error) {
          if (!(error instanceof Problem) || done.length === 0) throw error;
          throw new HostsProblem(
            error,
            one.host ?? '',
            done.map((operation) => operation.host ?? ''),
          );
        }
      }
      return done;
    },
  };
}

/** @param {HTMLFormElement} form @param {HTMLDialogElement} box @param {Operation[]} operations */
function showDone(form, box, operations) {
  const parts = operations.flatMap((operation) => operation.targets);
  const part = (/** @type {OperationTarget} */ target) =>
    h(
      'li',
      {},
      h(
        'a',
        { href: `#/events/${target.event}`, onclick: () => box.close() },
        `${shortScope(target.scope)}: ${target.resources.map((one) => one.name).join(', ')}`,
      ),
      ` ${target.status}${target.refused ? ` (${target.refused})` : ''}`,
    );
  fill(
    form,
    h('p', { role: 'status' }, `Done: ${count(parts.length, 'event')}.`),
    h('ul', { class: 'plan' }, parts.slice(0, PLAN_ROWS).map(part)),
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'button', class: 'primary', onclick: () => box.close() }, 'Close'),
    ),
  );
  form.querySelector('button')?.focus();
  dispatchEvent(new CustomEvent('acted'));
}

/** @param {Plan} plan */
function planText(plan) {
  const silent = plan.vms - plan.listening - plan.listening_unknown;
  const when = plan.not_before
    ? `not before ${local(Date.parse(plan.not_before))} (${relative(Date.parse(plan.not_before))})`
    : isAdvisory(plan)
      ? 'never: it is an advisory'
      : 'at once, without notice';
  const facts = [
    [
      'What',
      `${plan.type} of ${count(plan.vms, 'VM')} in ${count(plan.scopes, 'scope')}, ${count(plan.events.length, 'event')}`,
    ],
    ['When', when],
    [
      'Early start',
      plan.not_before
        ? plan.release === 'together'
          ? 'when every event is approved'
          : 'each event when it is approved'
        : null,
    ],
    [
      'Will hear',
      `${plan.listening} of ${count(plan.vms, 'VM')}${plan.listening_unknown ? `; ${plan.listening_unknown} unknown, the service has just started` : ''}`,
    ],
    [
      'Will not hear',
      silent > 0
        ? `${plan.silent.slice(0, 5).map(shortScope).join(', ')}${silent > 5 ? ` and ${silent - 5} more` : ''}`
        : null,
    ],
    ['Skipped', plan.deallocated ? `${count(plan.deallocated, 'deallocated VM')}` : null],
    [
      'Note',
      plan.operations.length
        ? `${count(plan.operations.length, 'operation')} on this host is still open`
        : null,
    ],
  ].filter(([, text]) => text);
  const row = (/** @type {PlannedEvent} */ event) =>
    h(
      'tr',
      {},
      h('td', {}, shortScope(event.scope)),
      h('td', {}, String(event.update_domain)),
      h(
        'td',
        {},
        event.resources
          .slice(0, 4)
          .map((one) => one.name)
          .join(', ') + (event.resources.length > 4 ? ` and ${event.resources.length - 4} more` : ''),
      ),
      h('td', {}, `${event.listening} of ${event.resources.length}`),
      h(
        'td',
        { class: 'wrap' },
        event.refused
          ? `refused: ${event.refused_because ?? event.refused}`
          : event.starts_because
            ? `starts at once: ${event.starts_because}`
            : event.waits_for
              ? `waits for ${localTimes(event.waits_for)}`
              : '',
      ),
    );
  return h(
    'div',
    {},
    h(
      'dl',
      { class: 'facts' },
      facts
        .map(([name, text]) => [
          h('dt', {}, name),
          h(
            'dd',
            {
              title: name === 'When' && plan.not_before ? `${utc(Date.parse(plan.not_before))} (UTC)` : null,
            },
            text,
          ),
        ])
        .flat(),
    ),
    h(
      'table',
      { tabindex: 0 },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['Scope', 'UD', 'VMs', 'Listening', ''].map((name) => h('th', {}, name)),
        ),
      ),
      h('tbody', {}, plan.events.slice(0, PLAN_ROWS).map(row)),
    ),
    plan.events.length > PLAN_ROWS &&
      h('p', { class: 'quiet' }, `and ${count(plan.events.length - PLAN_ROWS, 'more event')}`),
  );
}

/** @param {Vm} vm */
const startDialog = (vm) =>
  askDialog('Start', at`/v1/vms/${vm.id}/start`, [
    `${vm.name} is deallocated. It runs again, and gets events again.`,
  ]);

/** @param {Token} token @param {Session} session */
function revokeDialog(token, session) {
  const roles = token.grants.map(({ role, path }) => `${role} on ${path}`).join(', ');
  const own = token.name === session.token ? ' It is your own: you will be signed out.' : '';
  const text = `${token.name}: ${roles}. Requests with it are refused, and its sessions and streams end.${own}`;
  askDialog('Revoke', at`/v1/tokens/${token.name}`, [text], { method: 'DELETE', isHarsh: true });
}

/** @param {Cluster} cluster */
function handOverDialog({ leader, nodes = [] }) {
  const others = nodes.filter((node) => node.can_lead && node.name !== leader).map((node) => node.name);
  const plan = others.length
    ? `${leader} gives up the lead; ${others.join(' or ')} takes it, usually within 100 ms.`
    : `${leader} leads, and no other node can take the lead now: the request will be refused.`;
  askDialog('Hand over the lead', '/v1/cluster/hand-over', [
    plan,
    'Changes that are under way may answer that their outcome is unknown. Guests notice nothing.',
  ]);
}

/** @param {Operation} operation @param {'start' | 'cancel' | 'complete' | 'retry'} verb */
function operationDialog(operation, verb) {
  const { events, approved, started } = operation.progress;
  const texts = {
    start: ['Start operation now', 'All its events start now, without the approvals that are missing.'],
    cancel: ['Cancel operation', 'Its events that have not started will not happen.'],
    complete: ['Complete operation', 'Reports that all its events were carried out.'],
    retry: ['Retry', 'Runs the command of its host again.'],
  };
  const [title, text] = texts[verb];
  const scopes = [...new Set(operation.targets.map((target) => shortScope(target.scope)))];
  askDialog(title, at`/v1/operations/${operation.id}/${verb}`, [
    `${CAUSES[operation.cause] ?? operation.cause}${operation.host ? ` of host ${operation.host}` : ''}: ${count(events, 'event')} in ${scopes.slice(0, 5).join(', ')}; ${approved} approved, ${started} started.`,
    text,
  ]);
}

/** Makes keys: the same one for the same body. */
export function keyOfBody() {
  let text = '',
    key = '';
  return (/** @type {unknown} */ body) => {
    const next = JSON.stringify(body ?? null);
    if (next !== text) [text, key] = [next, newKey()];
    return key;
  };
}

/**
 * A question, and a request that happens once.
 * @param {string} title
 * @param {string} path
 * @param {string[]} texts
 * @param {{ fields?: HTMLElement[], body?: () => unknown, method?: 'POST' | 'DELETE', isHarsh?: boolean }} [options]
 */
function askDialog(title, path, texts, options = {}) {
  const { fields = [], body = () => undefined, method = 'POST', isHarsh = false } = options;
  const key = keyOfBody();
  const message = h('div', {});
  const confirm = h('button', { type: 'submit', class: isHarsh ? 'primary danger' : 'primary' }, title);
  const close = h('button', { type: 'button', onclick: () => box.close() }, 'Close');
  const form = h(
    'form',
    { method: 'dialog' },
    texts.map((text) => h('p', {}, text)),
    fields,
    message,
    h('div', { class: 'buttons' }, close, confirm),
  );
  const box = dialog(`${title}?`, form);
  const setSending = keepOpenWhileSending(box, close);
  form.addEventListener('submit', async (submit) => {
    submit.preventDefault();
    confirm.disabled = true;
    setSending(true);
    try {
      const sent = body();
      await change(method, path, sent, { key: key(sent) });
      box.close();
      dispatchEvent(new CustomEvent('acted'));
    } catch (error) {
      setSending(false);
      confirm.disabled = false;
      fill(message, failure(error));
    }
  });
  confirm.focus();
}

/** @param {Event} event @param {string} verb */
function eventDialog(event, verb) {
  /** @type {Record<string, [string, string]>} */
  const texts = {
    approve: [
      'Approve',
      'The event may then start before its NotBefore time. The approval counts for all its VMs and cannot be taken back.',
    ],
    start: ['Start now', 'The event starts now, without approval of its guests.'],
    cancel: ['Cancel event', 'The event will not happen.'],
    complete: ['Complete', 'Reports that the event was carried out. It leaves the documents of its guests.'],
    retry: ['Retry', 'Runs the commands again that failed.'],
  };
  const [title, text] = texts[verb];
  const hosts =
    verb === 'complete' && event.type === 'Redeploy'
      ? event.resources.map((one) => ({
          name: one.name,
          input: h('input', { type: 'text', id: `host-${one.vm}`, placeholder: one.host ?? 'host' }),
        }))
      : [];
  const notice = event.not_before
    ? `NotBefore is ${local(Date.parse(event.not_before))}, ${relative(Date.parse(event.not_before))}.`
    : '';
  const unread = event.unread_by?.length ? ` Not read by ${event.unread_by.slice(0, 5).join(', ')}.` : '';
  const what = `${event.type} of ${event.resources
    .map((one) => one.name)
    .slice(0, 5)
    .join(', ')} in ${shortScope(event.scope)}. ${notice}${unread}`;
  const fields = hosts.flatMap(({ name, input }) => [
    h('label', { for: input.id }, `New host of ${name} (optional)`),
    input,
  ]);
  const moved = () =>
    Object.fromEntries(
      hosts.filter(({ input }) => input.value).map(({ name, input }) => [name, input.value]),
    );
  askDialog(title, at`/v1/events/${event.id}/${verb}`, [what, text], {
    fields,
    body: () => (verb === 'complete' ? { hosts: moved() } : undefined),
  });
}
