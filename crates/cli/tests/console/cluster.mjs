// A cluster for tests of the nodes' view: three nodes, one of them silent and one with a wrong clock, on three members of
// etcd, one of them silent.

/** The answer of `GET /v1/cluster`. */
export function cluster() {
  const now = Date.now();
  const at = (secondsAgo) => new Date(now - secondsAgo * 1000).toISOString();
  const node = (name, machine, rest) => ({
    name,
    epoch: `${name}-1`,
    url: `https://10.9.0.${machine}:9256`,
    state: 'running',
    last_heartbeat_at: at(0),
    heartbeat_age_ms: 400,
    leads: false,
    can_lead: true,
    format_level: 2,
    watched_revision: 4_118,
    lag_revisions: 1,
    ...rest,
  });
  const member = (name, machine, rest) => ({
    id: `8e9e05c52164694${machine}`,
    name,
    urls: [`https://10.9.0.${machine}:2379`],
    state: 'answered',
    leads: false,
    is_learner: false,
    version: '3.4.23',
    database_bytes: 1_800 * 2 ** 20,
    database_bytes_in_use: 700 * 2 ** 20,
    ...rest,
  });
  const error = 'tcp connect error: Connection refused (os error 111)';
  const problem = (code, detail) => ({ code, detail });
  return {
    mode: 'cluster',
    now: at(0),
    node: 'a',
    leader: 'a',
    format_level: 2,
    revision: 4_119,
    nodes: [
      node('a', 1, { leads: true, clock_offset_ms: -12 }),
      node('b', 2, { can_lead: false, clock_offset_ms: 1_700 }),
      node('c', 3, {
        state: 'silent',
        can_lead: false,
        last_heartbeat_at: at(3.5 * 3600),
        heartbeat_age_ms: 3.5 * 3_600_000,
      }),
    ],
    etcd: {
      asked_at: at(0),
      cluster_id: 'cdf818194e3a8c32',
      members: [
        member('e1', 1, { leads: true }),
        member('e2', 2, {}),
        member('e3', 3, {
          state: 'silent',
          error,
          version: undefined,
          database_bytes: undefined,
          database_bytes_in_use: undefined,
        }),
      ],
      database_bytes: 1_800 * 2 ** 20,
      database_bytes_in_use: 700 * 2 ** 20,
      quota_bytes: 2 ** 31,
      alarms: [],
    },
    problems: [
      problem(
        'node_clock',
        'the clock of node b is +1.7 s from the median of all nodes, so it cannot take the lead: check its NTP',
      ),
      problem(
        'node_silent',
        `node c is silent since ${at(3.5 * 3600)}: start it again, or check its connection to etcd; if it is gone for good, 'notbefore cluster forget c'`,
      ),
      problem(
        'etcd_endpoint_silent',
        `etcd does not answer at https://10.9.0.3:2379: ${error}; check that member, or change etcd.endpoints`,
      ),
      problem(
        'etcd_nearly_full',
        'the database of etcd is nearly full, 1.8 GiB of 2.0 GiB: defragment its members, lower events.keep_history_bytes, or raise --quota-backend-bytes of the members and etcd.quota',
      ),
    ],
  };
}
