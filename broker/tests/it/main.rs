//! The processes as an operator meets them: started from configuration text in a simulated world, and the built binary for real.
#[cfg(madsim)]
mod boot;
#[cfg(not(madsim))]
mod command_line;
#[cfg(madsim)]
mod load;
#[cfg(madsim)]
mod refusal;
