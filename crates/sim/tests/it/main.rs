//! Histories against the model, and the ones that once failed.

mod histories;
mod replay;
