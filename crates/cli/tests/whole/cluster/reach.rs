//! The ways of guests to a living node, with the real programs and the samples of `dist/`: see `reach.sh`.

#[test]
fn guests_reach_a_living_node_by_proxy_vrrp_and_anycast() {
    let programs = [
        ("/usr/sbin/haproxy", "haproxy"),
        ("/usr/sbin/keepalived", "keepalived"),
        ("/usr/sbin/exabgp", "exabgp"),
        ("/usr/sbin/bird", "bird2"),
        ("/usr/bin/jq", "jq"),
    ];
    super::guide::run_script("reach.sh", &programs);
}
