//! Plans that create and revoke tokens.
//!
//! A token's record is compared like any other, so of two concurrent creations with the same name one succeeds. One
//! permanent token that is operator on `/` is always left: when such a token is revoked, another one's record is
//! compared too. So two such tokens cannot revoke each other at the same moment.

use notbefore_core::access::TOKENS_MAX;
use notbefore_core::{Fact, Name, Refusal, Token};

use crate::plan::{Plan, Planner};
use crate::records;
use crate::request::{Answer, Failure, TokenCommand};

impl Planner<'_> {
    pub(crate) fn plan_token(&self, command: &TokenCommand) -> Result<Plan, Failure> {
        match command {
            TokenCommand::Create(token) => self.create_token(token),
            TokenCommand::Revoke(name) => self.revoke_token(name),
        }
    }

    fn create_token(&self, token: &Token) -> Result<Plan, Failure> {
        if self.state.token(&token.name).is_some() {
            return Err(Refusal::TokenTaken(token.name.clone()).into());
        }
        if self.state.tokens().count() >= TOKENS_MAX {
            return Err(Refusal::TooManyTokens.into());
        }
        let mut draft = self.draft();
        draft.create(records::token(&token.name), token);
        let fact = Fact::TokenCreated { name: token.name.clone(), grants: token.grants.clone() };
        draft.facts(None, vec![self.recorded(fact)]);
        Ok(self.write(draft, Answer::Done))
    }

    fn revoke_token(&self, name: &Name) -> Result<Plan, Failure> {
        let held = self.state.token(name).ok_or_else(|| Refusal::UnknownToken(name.clone()))?;
        let mut draft = self.draft();
        if is_lasting_operator(&held.value) {
            let other = self
                .state
                .tokens()
                .find(|other| other.value.name != *name && is_lasting_operator(&other.value))
                .ok_or_else(|| Refusal::LastOperator(held.value.name.clone()))?;
            draft.expect(records::token(&other.value.name), Some(other.revision));
        }
        draft.remove(records::token(name), held.revision);
        let fact = Fact::TokenRevoked { name: held.value.name.clone() };
        draft.facts(None, vec![self.recorded(fact)]);
        Ok(self.write(draft, Answer::Done))
    }
}

fn is_lasting_operator(token: &Token) -> bool {
    token.is_full_operator() && token.expires_at.is_none()
}
