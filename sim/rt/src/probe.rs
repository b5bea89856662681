//! Marks in production code that the explorer and the tests read; they vanish in production.

/// A rare branch was reached. The name is global: the `tidy` test demands a test that reaches it.
#[macro_export]
macro_rules! probe {
    ($name:literal) => {{
        #[cfg(madsim)]
        $crate::macro_support::hit($name);
    }};
}

/// The condition should be true in at least one run of a campaign.
#[macro_export]
macro_rules! sometimes {
    ($condition:expr, $name:literal) => {{
        #[cfg(madsim)]
        $crate::macro_support::sometimes($condition, $name);
    }};
}

/// The condition must be true whenever this line runs: a finding in simulation, nothing in production.
#[macro_export]
macro_rules! always {
    ($condition:expr, $name:literal) => {{
        #[cfg(madsim)]
        $crate::macro_support::always($condition, $name);
    }};
}

/// Waits for `pause` now and then, at sites drawn active for this run: a task that the system lets run late. Nothing in production.
#[macro_export]
macro_rules! dawdle {
    ($site:literal, $pause:expr) => {{
        #[cfg(madsim)]
        if $crate::buggify!($site) {
            $crate::time::sleep($pause).await;
        }
        #[cfg(not(madsim))]
        let _ = $pause;
    }};
}

/// True now and then, at sites drawn active for this run: makes a legal but rare choice likely. False in production.
#[macro_export]
macro_rules! buggify {
    ($site:literal) => {{
        #[cfg(madsim)]
        let active = $crate::macro_support::buggify($site);
        #[cfg(not(madsim))]
        let active = false;
        active
    }};
}
