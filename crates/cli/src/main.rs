//! The program; its code is in the library.

fn main() -> std::process::ExitCode {
    notbefore::main()
}
