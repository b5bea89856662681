//! What the marks in the code under test have seen in this run. Outside of a world they do nothing.
use super::finding::FindingKind;
use super::rand::Rng;
use super::trace::Event;
use super::world::{World, try_world};
use std::collections::BTreeMap;
use std::panic::Location;

/// How often [`buggify!`](crate::buggify!) sites deviate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Buggify {
    /// A site is active in a run with this probability.
    pub site_probability: f64,
    /// An active site says yes with this probability.
    pub fire_probability: f64,
}

impl Default for Buggify {
    fn default() -> Buggify {
        Buggify { site_probability: 0.25, fire_probability: 0.25 }
    }
}

/// The marks of one run, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProbeReport {
    /// [`probe!`](crate::probe!): how often it was reached.
    pub hits: BTreeMap<&'static str, u64>,
    /// [`sometimes!`](crate::sometimes!): how often its condition held and did not hold.
    pub sometimes: BTreeMap<&'static str, Sometimes>,
    /// [`always!`](crate::always!): how often its condition was checked.
    pub always: BTreeMap<&'static str, u64>,
    /// [`buggify!`](crate::buggify!): how often an *active* site said yes.
    pub buggified: BTreeMap<&'static str, u64>,
}

/// Counts of a [`sometimes!`](crate::sometimes!) condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sometimes {
    /// It held.
    pub held: u64,
    /// It did not.
    pub missed: u64,
}

pub(crate) struct Probes {
    seed: u64,
    buggify: Option<Buggify>,
    report: ProbeReport,
    sites: Vec<Site>,
    /// Place in `sites` by the address of a name: code asks at every frame and comparing names would cost more than the rest. Two places
    /// of the code that share a name may keep it at two addresses. Only looked up, never walked.
    places: BTreeMap<usize, usize>,
}

struct Site {
    name: &'static str,
    active: bool,
    fired: u64,
    rng: Rng,
}

impl Probes {
    pub(super) fn new(seed: u64, buggify: Option<Buggify>) -> Probes {
        Probes { seed, buggify, report: ProbeReport::default(), sites: Vec::new(), places: BTreeMap::new() }
    }

    pub(super) fn take_report(&mut self) -> ProbeReport {
        let mut report = std::mem::take(&mut self.report);
        report.buggified = self.sites.iter().filter(|site| site.active).map(|site| (site.name, site.fired)).collect();
        report
    }

    /// `None`: the site is not active, nothing was drawn.
    fn buggify(&mut self, name: &'static str) -> Option<bool> {
        let config = self.buggify?;
        let place = match self.places.get(&name.as_ptr().addr()) {
            Some(place) => *place,
            None => self.place(name, config),
        };
        let site = &mut self.sites[place];
        if !site.active {
            return None;
        }
        let fires = site.rng.chance(config.fire_probability);
        site.fired += u64::from(fires);
        Some(fires)
    }

    fn place(&mut self, name: &'static str, config: Buggify) -> usize {
        let known = self.sites.iter().position(|site| site.name == name);
        let place = known.unwrap_or_else(|| {
            let mut rng = Rng::new(Rng::new(self.seed, "buggify").next(), name);
            self.sites.push(Site { name, active: rng.chance(config.site_probability), fired: 0, rng });
            self.sites.len() - 1
        });
        self.places.insert(name.as_ptr().addr(), place);
        place
    }
}

/// A rare branch was reached.
pub fn hit(name: &'static str) {
    if let Some(world) = try_world() {
        *world.probes.borrow_mut().report.hits.entry(name).or_default() += 1;
    }
}

/// Counts whether the condition held.
pub fn sometimes(condition: bool, name: &'static str) {
    if let Some(world) = try_world() {
        let mut probes = world.probes.borrow_mut();
        let counts = probes.report.sometimes.entry(name).or_default();
        *(if condition { &mut counts.held } else { &mut counts.missed }) += 1;
    }
}

/// Checks what must always hold; the run ends with a finding if it does not.
#[track_caller]
pub fn always(condition: bool, name: &'static str) {
    if let Some(world) = try_world() {
        *world.probes.borrow_mut().report.always.entry(name).or_default() += 1;
        if !condition {
            world.report_here(FindingKind::Always, name.to_owned(), Some(Location::caller()));
        }
    }
}

/// Whether to deviate at this site now.
pub fn buggify(site: &'static str) -> bool {
    try_world().is_some_and(|world| deviates(world, site))
}

fn deviates(world: &World, site: &'static str) -> bool {
    let Some(fires) = world.probes.borrow_mut().buggify(site) else { return false };
    world.record_as(Event::Draw, u32::MAX, u64::from(fires));
    fires
}
