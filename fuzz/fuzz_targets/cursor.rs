#![no_main]

notbefore_fuzz::target!("cursor");
