// Events as text: symbols, states, countdowns, and what a caller may do with them.

import { count, fill, h, local, now, relative, span, utc } from './dom.js';

/** @import {Event, Fact, Grant, Resource, Session} from 'notbefore-api' */
/** @typedef {'scheduled' | 'approved' | 'started' | 'failed' | 'advisory' | 'completed' | 'cancelled'} Stage */

/** @type {Record<string, string>} */
export const SYMBOLS = {
  Freeze: '❄',
  Reboot: '↻',
  Redeploy: '⇄',
  Preempt: '⏏',
  Terminate: '✕',
  SpotRebalanceRecommendation: '⚑',
};

/** @type {Record<string, string>} */
export const CAUSES = {
  'user-restart': 'Restart',
  'user-redeploy': 'Redeploy',
  eviction: 'Evict',
  rebalance: 'Advise: may be evicted',
  deletion: 'Delete',
  'host-freeze': 'Host maintenance: freeze',
  'host-reboot': 'Host maintenance: reboot',
  'host-redeploy': 'Host maintenance: redeploy',
  'live-migration': 'Live migration',
  'predicted-failure': 'Predicted failure: redeploy',
  'host-failure': 'Host failure: reboot now',
};

/** @type {Record<Stage, string>} */
const STAGES = {
  scheduled: 'Scheduled',
  approved: 'Approved',
  started: 'Started',
  failed: 'Failed',
  advisory: 'Advisory',
  completed: 'Completed',
  cancelled: 'Cancelled',
};
/** A second sign of each state, besides its colour. @type {Record<Stage, string>} */
const STAGE_SIGNS = {
  scheduled: '○',
  approved: '✓',
  started: '▶',
  failed: '!',
  advisory: '◇',
  completed: '●',
  cancelled: '–',
};

/** @param {Event} event @returns {Stage} */
export function stage(event) {
  if (event.status === 'Completed') return 'completed';
  if (event.status === 'Cancelled') return 'cancelled';
  if (event.exec?.commands.some((command) => command.state === 'failed')) return 'failed';
  if (event.status === 'Started') return 'started';
  if (event.status === 'Advisory') return 'advisory';
  return event.approved ? 'approved' : 'scheduled';
}

/** @param {Event} event */
export const stageName = (event) => STAGES[stage(event)];

/** The state with its sign. @param {Event} event */
export function stageBadge(event) {
  const badge = h('span', { class: 'badge' });
  setBadge(badge, event);
  return badge;
}

/** @param {HTMLElement} badge @param {Event} event */
export function setBadge(badge, event) {
  const is = stage(event);
  if (badge.dataset.stage === is) return;
  badge.dataset.stage = is;
  fill(badge, `${STAGE_SIGNS[is]} `, h('span', { class: 'stage-name' }, STAGES[is]));
}

/** The time that an event is about: NotBefore, its start or its end. @param {Event} event */
export function instant(event) {
  return (
    Date.parse(event.ended_at ?? event.started_at ?? event.not_before ?? event.scheduled_at ?? '') || now()
  );
}

/** When, relative to now. @param {Event} event */
export function when(event) {
  const at = instant(event);
  if (event.ended_at) return `ended ${relative(at)}`;
  if (event.status === 'Started') return `started ${relative(at)}`;
  if (event.status === 'Advisory') return `advised ${relative(at)}`;
  return at > now() ? relative(at) : `due ${span(now() - at)} ago`;
}

/** @param {Event} event */
export const whenTitle = (event) => `${local(instant(event))} · ${utc(instant(event))} (UTC)`;

/** Names of the first VMs. @param {Event} event @param {number} [most] */
export function vmNames(event, most = 3) {
  const names = event.resources.map((one) => one.name);
  const more = names.length - most;
  return names.slice(0, most).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Who has read it. @param {Event} event */
export function readBy(event) {
  const all = event.resources.length,
    unread = event.unread_by?.length ?? 0;
  if (unread === 0) return all === 1 ? 'read' : `read by all ${all}`;
  return all === 1 ? 'not read' : `${all - unread} of ${all} read`;
}

/**
 * Started events first, then scheduled ones, then advisories, each by time; then ended ones, the newest first.
 * @param {Event} one
 * @param {Event} two
 */
export function byUrgency(one, two) {
  const rank = (/** @type {Event} */ event) =>
    event.ended_at ? 3 : event.status === 'Started' ? 0 : event.status === 'Advisory' ? 2 : 1;
  const order = rank(one) - rank(two);
  if (order !== 0) return order;
  const times = instant(one) - instant(two);
  return (one.ended_at ? -times : times) || (one.id < two.id ? -1 : 1);
}

/** A text of the service with its times in the browser's zone. @param {string | null | undefined} text */
export const localTimes = (text) =>
  (text ?? '').replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (found) => local(Date.parse(found)));

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/** The same, with its events as links. @param {string} text @returns {(Node | string)[]} */
export function linked(text) {
  const shown = localTimes(text);
  const ids = shown.match(ID) ?? [];
  return shown
    .split(ID)
    .flatMap((part, n) =>
      ids[n] ? [part, h('a', { href: `#/events/${ids[n]}`, title: ids[n] }, ids[n].slice(0, 8))] : [part],
    );
}

/** Links to the first VMs. @param {Resource[]} resources @param {number} [most] @returns {(Node | string)[]} */
export function vmLinks(resources, most = 5) {
  const links = resources
    .slice(0, most)
    .flatMap((one, n) => [n > 0 ? ', ' : '', h('a', { href: `#/vms/${one.vm}` }, one.name)]);
  return resources.length > most ? [...links, ` and ${resources.length - most} more`] : links;
}

/** A scope without the parts that are `default`. @param {string} path */
export const shortScope = (path) => path.replace(/^default\/(default\/)?/, '');

/**
 * Whether the caller has a role at a path.
 * @param {Session} session
 * @param {'viewer' | 'tenant' | 'operator'} role
 * @param {string} path
 */
export function may(session, role, path) {
  const order = ['viewer', 'tenant', 'operator'];
  const covers = (/** @type {Grant} */ grant) => {
    const prefix = grant.path.replace(/^\/+|\/+$/g, '').toLowerCase();
    const whole = path.toLowerCase();
    return prefix === '' || whole === prefix || whole.startsWith(`${prefix}/`);
  };
  return session.grants.some((grant) => order.indexOf(grant.role) >= order.indexOf(role) && covers(grant));
}

/** Operator everywhere. @param {Session} session */
export const isFullOperator = (session) => may(session, 'operator', '');

/** What a fact says, in words. @param {Fact} fact */
export function factText(fact) {
  const detail = /** @type {Record<string, any>} */ (/** @type {any} */ (fact).detail ?? {});
  const words = fact.type
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/^vm /, 'VM ');
  const more = [
    detail.not_before &&
      `${detail.cause === 'rebalance' ? 'no deadline: date' : 'not before'} ${local(Date.parse(detail.not_before))}`,
    detail.why,
    detail.api_version && `api-version ${detail.api_version}`,
    detail.attempt && `attempt ${detail.attempt}`,
    detail.host && `host ${detail.host}`,
    detail.node && `node ${detail.node}`,
    detail.level && `format level ${detail.level}`,
    detail.name,
    detail.targets && count(detail.targets, 'part'),
  ].filter(Boolean);
  return words.charAt(0).toUpperCase() + words.slice(1) + (more.length ? `: ${more.join(', ')}` : '');
}

/** @param {Fact} fact */
export function actorText(fact) {
  const { kind, name, address } = fact.by;
  const who = name && name !== kind ? `${kind} ${name}` : kind;
  return address ? `${who} at ${address}` : who;
}
