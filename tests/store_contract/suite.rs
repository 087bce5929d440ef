//! The interface that a backend implements for the suite, and the list of all tests.

use std::sync::Arc;

use countersign::records::store::{self, Store};

/// One store of its own, empty at first; dropping it removes it.
pub(crate) trait Backend: Sized {
    /// Makes the store.
    async fn fresh() -> Self;
    /// The engine and the place.
    fn engine(&self) -> store::Backend;
    /// Opens it once more, as another process would.
    async fn open(&self) -> Arc<Store>;
}

/// Makes a test of every fact for one backend.
macro_rules! contract {
    ($backend:ty) => {
        contract! { $backend;
            consumers: keeps_every_field, takes_a_key_once, changes_only_what_is_asked, never_leaves_one_that_cannot_sign, never_enables_one_that_is_not_approved,
                keeps_the_secret_before_a_rotation, removes_what_belongs_to_it, lists_in_pages,
                keeps_the_latest_use, has_one_developer_link_for_a_time;
            users: keeps_every_field, takes_an_id_and_a_name_once, folds_ascii_case_of_names_only, admits_whom_an_outside_login_vouches_for,
                ends_sessions_with_a_new_password, disabling_ends_everything_for_good,
                removal_ends_everything_and_retires_the_id, lists_in_pages, tells_what_passwords_cost;
            registrations: bounds_count_a_user_and_a_day, names_are_taken_in_any_ascii_case,
                lists_those_of_an_owner_and_those_to_decide, of_racing_ones_as_many_succeed_as_are_allowed;
            tokens: keeps_every_field, refuses_a_token_that_could_not_be_used,
                revokes_once_and_for_all, lists_by_user_and_consumer_in_pages, lists_the_longest_unused_first, lists_what_ends_in_a_time,
                keeps_the_latest_use, keeps_many_uses, revokes_all_of_a_user_and_a_consumer, finds_what_is_unused,
                an_own_one_ends_the_own_ones_before, makes_no_own_one_of_what_has_ended, of_racing_own_ones_one_stays,
                no_racing_own_one_outlives_its_user_or_consumer;
            flow: keeps_a_request_token, has_a_limit_for_the_open_ones_of_a_consumer, finds_it_by_the_token_of_its_redirect,
                records_one_decision, a_decision_gives_at_most_what_was_asked_for,
                repeats_only_what_the_user_allowed, no_repeated_decision_outlives_a_revocation, an_expired_token_is_not_decided,
                refuses_decisions_for_what_is_gone_or_disabled, starts_a_new_lifetime,
                of_racing_decisions_one_is_recorded;
            exchange: gives_one_access_token, takes_the_token_of_the_redirect,
                answers_in_the_order_of_the_port, five_wrong_verifiers_void_the_token,
                four_wrong_verifiers_do_not, is_bound_to_its_consumer,
                of_racing_exchanges_one_succeeds, of_racing_exchanges_by_both_tokens_one_succeeds,
                gives_out_a_token_again, ends_tokens_past_the_limit, of_racing_exchanges_all_get_one_token,
                a_revocation_ends_what_was_not_exchanged, wrong_verifiers_at_once_are_all_counted, ends_with_its_user, no_racing_one_outlives_its_user;
            sessions: opens_finds_and_closes, keeps_the_newest_sessions_of_a_user, lists_and_closes_those_of_one_user, ends_in_time,
                belongs_to_an_enabled_user,
                opens_only_with_the_password_that_was_verified, a_login_renews_the_hash_of_the_password,
                no_racing_login_outlives_the_old_password, a_decision_ends_with_its_session,
                a_changed_password_leaves_one_session, of_racing_password_changes_one_succeeds;
            changes: a_new_caller_is_told_where_the_feed_stands, tells_every_kind_once_and_in_order,
                tells_what_another_handle_changed, says_nothing_of_what_did_not_change,
                admits_what_it_has_forgotten, tells_what_commands_did, keeps_what_operators_did_for_a_time,
                tells_of_failed_logins_where_several_serve;
            transfer: round_trip_gives_the_same_records, is_idempotent, takes_all_or_nothing,
                imports_more_than_one_step, reports_problems_together, a_dry_run_changes_nothing,
                replaces_what_differs, updates_members_and_prunes_consumers,
                a_file_that_cannot_be_read_to_its_end_is_not_imported,
                notes_what_another_store_accepted, an_export_beside_changes_can_be_imported,
                rejects_other_content, keeps_removed_ones_out, takes_marks_of_removed_ones,
                revokes_one_way, needs_consumer_and_user, takes_records_in_any_order, bounds_what_passwords_cost,
                names_the_import_that_others_wait_for;
            reseal: seals_everything_beside_processes_that_know_both_keys, keeps_what_changes_meanwhile,
                seals_a_plain_store, names_a_secret_that_no_key_opens;
            upkeep: answers_a_ping, the_mark_of_nonces_only_rises,
                removes_request_tokens_and_sessions_a_day_after_their_end, removes_access_tokens_some_time_after_their_end,
                several_processes_remove_each_token_once,
                everything_is_there_when_opened_again;
        }
    };
    ($backend:ty; $($module:ident: $($fact:ident),+;)+) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                crate::store_contract::$module::$fact::<$backend>().await;
            })+
        })+
    };
}
