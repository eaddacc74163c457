#![no_main]

notbefore_fuzz::target!("start_requests");
