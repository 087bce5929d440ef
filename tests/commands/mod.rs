//! The commands on the store, run as processes: their output, their refusals, their lasting effects. Tests that need a
//! running proxy are in `tests/acceptance/cli/commands_while_serving.rs`.

mod consumers;
mod failures;
mod guides;
mod lti_key_sign;
mod manual;
mod paths;
mod rekey;
mod signing;
mod terminal;
mod tokens;
mod transfer;
mod users;
mod workspace;
