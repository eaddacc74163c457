#![no_main]

notbefore_fuzz::target!("lease");
