#![no_main]

notbefore_fuzz::target!("fleet");
