//! The name server in use, and the next one when it fails.

/// The list, and which one is asked first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameServers {
    servers: Vec<String>,
    chosen: usize,
}

impl NameServers {
    /// Starts at any of them: `draw` is a random number.
    pub(crate) fn new(servers: Vec<String>, draw: usize) -> NameServers {
        let chosen = draw.checked_rem(servers.len()).unwrap_or(0);
        NameServers { servers, chosen }
    }

    /// All of them, the chosen one first: the order in which to ask.
    pub(crate) fn in_order(&self) -> Vec<String> {
        let (before, from) = self.servers.split_at(self.chosen);
        from.iter().chain(before).cloned().collect()
    }

    /// This one answered: keep to it.
    pub(crate) fn answered(&mut self, server: &str) {
        if let Some(index) = self.servers.iter().position(|s| s == server) {
            self.chosen = index;
        }
    }

    /// This one did not answer: the next one is asked first from now on.
    pub(crate) fn failed(&mut self, server: &str) {
        if self.servers.get(self.chosen).is_some_and(|chosen| chosen == server) {
            self.chosen = (self.chosen + 1) % self.servers.len();
        }
    }

    /// Puts another list in place. Keeps to the chosen one only if it is still in the list. Returns those that are not.
    pub(crate) fn replace(&mut self, servers: Vec<String>, draw: usize) -> Vec<String> {
        let chosen = self.servers.get(self.chosen).cloned();
        let old = std::mem::replace(self, NameServers::new(servers, draw));
        if let Some(chosen) = chosen {
            self.answered(&chosen);
        }
        old.servers.into_iter().filter(|server| !self.servers.contains(server)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::NameServers;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn keeps_to_the_one_that_answered() {
        let mut servers = NameServers::new(list(&["a", "b", "c"]), 4);
        assert_eq!(servers.in_order(), list(&["b", "c", "a"]));
        servers.answered("c");
        assert_eq!(servers.in_order(), list(&["c", "a", "b"]));
    }

    #[test]
    fn one_that_failed_is_asked_last() {
        let mut servers = NameServers::new(list(&["a", "b", "c"]), 2);
        servers.failed("c");
        assert_eq!(servers.in_order(), list(&["a", "b", "c"]));
        servers.failed("c");
        assert_eq!(servers.in_order(), list(&["a", "b", "c"]), "another one was chosen meanwhile");
        NameServers::new(Vec::new(), 0).failed("c");
    }

    #[test]
    fn a_removed_server_is_not_asked_again() {
        let mut servers = NameServers::new(list(&["a", "b"]), 0);
        assert_eq!(servers.replace(list(&["c", "b"]), 1), list(&["a"]));
        assert_eq!(servers.in_order(), list(&["b", "c"]));
        assert_eq!(servers.replace(list(&["x", "b"]), 0), list(&["c"]));
        assert_eq!(servers.in_order(), list(&["b", "x"]));
    }

    #[test]
    fn an_empty_list_asks_nobody() {
        assert!(NameServers::new(Vec::new(), 7).in_order().is_empty());
    }
}
