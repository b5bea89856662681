//! How tables, numbers and times look to people, the same in every command.

use comfy_table::{CellAlignment, Table, TableComponent, presets};
use std::time::Duration;

/// An empty table in the house's style.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    // Lines between rows only make a table longer.
    table.remove_style(TableComponent::HorizontalLines).remove_style(TableComponent::MiddleIntersections);
    table
}

pub(crate) fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        table.column_mut(column).expect("the header has it").set_cell_alignment(CellAlignment::Right);
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A long time as days, hours, minutes and seconds.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{:.3} s", time.as_secs_f64()),
        (0, 0, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes:02}m {:02}s", seconds % 60),
        _ => format!("{days}d {hours:02}h {minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::{clock, grouped};
    use std::time::Duration;

    #[test]
    fn numbers_and_times_are_readable() {
        let groups: Vec<String> = [0, 999, 1_000, 1_234_567].map(grouped).to_vec();
        assert_eq!(groups, ["0", "999", "1,000", "1,234,567"]);
        let times: Vec<String> = [1, 61, 3_600, 100_000].map(|seconds| clock(Duration::from_secs(seconds))).to_vec();
        assert_eq!(times, ["1.000 s", "1m 01s", "1h 00m 00s", "1d 03h 46m"]);
    }
}
