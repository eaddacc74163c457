// The nodes of a cluster: who leads, who is silent, whose clock is off; the members of etcd; what is wrong.

import { get } from './api.js';
import { count, everySecond, fill, h, local, relative, setText } from './dom.js';
import { localTimes } from './events.js';
import { coalesced } from './feed.js';

/** @import {Cluster, ClusterNode, Etcd, EtcdMember} from 'notbefore-api' */
/** @import {AsyncView} from './app.js' */

/** Seconds between two requests while the view is shown. */
const EVERY = 2;
const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'];

/** A size in the largest unit of which there is at least one. @param {number | null | undefined} bytes */
function size(bytes) {
  if (bytes === null || bytes === undefined) return '';
  let unit = 0,
    left = bytes / 1024;
  for (; left >= 1024 && unit + 1 < UNITS.length; unit += 1) left /= 1024;
  return `${left.toFixed(1)} ${UNITS[unit]}`;
}

/** @param {ClusterNode} node */
function nodeState(node) {
  if (node.state !== 'running') return node.state;
  if (node.leads) return 'leads';
  return node.can_lead ? 'follows' : 'cannot lead';
}

/** @param {ClusterNode} node */
const heartbeat = (node) =>
  node.state === 'running'
    ? `${(node.heartbeat_age_ms / 1000).toFixed(1)} s ago`
    : relative(Date.parse(node.last_heartbeat_at));

/** @param {ClusterNode} node */
function clock(node) {
  const { clock_offset_ms: offset } = node;
  if (offset === null || offset === undefined) return '';
  return `${offset > 0 ? '+' : ''}${offset} ms`;
}

/** @param {EtcdMember} member */
function memberState(member) {
  if (member.state === 'not-asked') return 'not asked';
  if (member.state !== 'answered') return `silent${member.error ? `: ${member.error}` : ''}`;
  if (member.leads) return 'leads';
  return member.is_learner ? 'learns' : 'follows';
}

/** A table of texts; a row may be marked. @param {string[]} head @param {{ cells: string[], isBad: boolean }[]} rows */
const table = (head, rows) =>
  h(
    'table',
    { class: 'wide' },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        head.map((text) => h('th', {}, text)),
      ),
    ),
    h(
      'tbody',
      {},
      rows.map(({ cells, isBad }) =>
        h(
          'tr',
          {},
          cells.map((text, n) =>
            h(
              'td',
              { class: isBad && n === 1 ? 'bad wrap' : 'wrap', 'data-label': n > 1 ? head[n] : null },
              text,
            ),
          ),
        ),
      ),
    ),
  );

/** @param {Cluster} cluster */
const nodeTable = (cluster) =>
  table(
    ['Node', 'State', 'Heartbeat', 'Clock', 'Lag', 'Level', 'URL'],
    (cluster.nodes ?? []).map((node) => ({
      cells: [
        node.name === cluster.node ? `${node.name} (this one)` : node.name,
        nodeState(node),
        heartbeat(node),
        clock(node),
        String(node.lag_revisions),
        String(node.format_level),
        node.url,
      ],
      isBad: node.state === 'silent' || (node.state === 'running' && !node.can_lead),
    })),
  );

/** @param {Etcd} etcd */
function etcdPart(etcd) {
  if (etcd.error) return h('p', { class: 'bad' }, `No answer: ${etcd.error}`);
  const used = size(etcd.database_bytes);
  const quota = etcd.quota_bytes ? ` of ${size(etcd.quota_bytes)}` : '';
  return h(
    'div',
    {},
    h(
      'p',
      {},
      `Cluster ${etcd.cluster_id ?? 'unknown'}, ${count(etcd.members?.length ?? 0, 'member')}`,
      used && `; database ${used}${quota}, ${size(etcd.database_bytes_in_use)} in use`,
    ),
    table(
      ['Member', 'State', 'Version', 'Database', 'In use', 'URLs'],
      (etcd.members ?? []).map((member) => ({
        cells: [
          member.name || member.id,
          memberState(member),
          member.version ?? '',
          size(member.database_bytes),
          size(member.database_bytes_in_use),
          member.urls.join(', '),
        ],
        isBad: member.state === 'silent',
      })),
    ),
  );
}

/** @type {AsyncView} */
export async function nodesView({ signal, act }) {
  const status = h('span', { class: 'quiet', role: 'status' }),
    problems = h('div', {}),
    facts = h('p', {}),
    nodes = h('div', {}),
    etcd = h('div', {});
  /** @type {Cluster | null} */
  let cluster = null;
  const handOver = h(
    'button',
    { type: 'button', onclick: () => cluster && act({ kind: 'hand-over', cluster }) },
    'Hand over the lead…',
  );
  async function draw() {
    /** @type {Cluster} */
    const found = await get('/v1/cluster', signal);
    cluster = found;
    if (found.mode === 'single') return;
    const running = (found.nodes ?? []).filter((node) => node.state === 'running').length;
    setText(
      status,
      `${running} of ${count(found.nodes?.length ?? 0, 'node')} running, as of ${local(Date.now())}`,
    );
    handOver.disabled = !found.leader;
    setText(facts, `Leader: ${found.leader ?? 'none'}. Format level ${found.format_level ?? 'unknown'}.`);
    const wrong = found.problems ?? [];
    // Announced only when it changes.
    const text = JSON.stringify(wrong.map(({ code }) => code));
    if (problems.dataset.shown !== text) {
      problems.dataset.shown = text;
      fill(
        problems,
        wrong.length === 0
          ? h('p', { class: 'quiet' }, 'Nothing is wrong.')
          : h(
              'div',
              { role: 'alert' },
              h(
                'ul',
                { class: 'problems' },
                wrong.map(({ detail }) => h('li', { class: 'bad' }, localTimes(detail))),
              ),
            ),
      );
    }
    fill(nodes, nodeTable(found));
    fill(etcd, found.etcd ? [h('h2', {}, 'etcd'), etcdPart(found.etcd)] : null);
  }
  await draw();
  if (/** @type {Cluster | null} */ (cluster)?.mode === 'single') {
    const element = h(
      'div',
      { class: 'view' },
      h('h1', {}, 'Nodes'),
      h(
        'p',
        {},
        'This service has one node. To run several, start each with ',
        h('code', {}, 'notbefore serve --etcd URL'),
        '.',
      ),
    );
    return { element, title: 'Nodes' };
  }
  const again = coalesced(async () => {
    if (signal.aborted) return;
    await draw().catch((/** @type {Error} */ error) => setText(status, error.message));
  });
  let seconds = 0;
  const stop = everySecond(() => {
    seconds += 1;
    if (seconds % EVERY === 0) void again();
  });
  signal.addEventListener('abort', stop);
  addEventListener('acted', again, { signal });
  const element = h(
    'div',
    { class: 'view' },
    h('div', { class: 'title-row' }, h('h1', {}, 'Nodes'), status, h('div', { class: 'actions' }, handOver)),
    facts,
    h('section', { 'aria-label': 'Problems' }, problems),
    h('section', { 'aria-label': 'Nodes' }, nodes),
    h('section', { 'aria-label': 'etcd' }, etcd),
  );
  return { element, title: 'Nodes' };
}
