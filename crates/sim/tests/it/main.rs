//! Histories against the model, and regressions.

mod histories;
mod replay;
