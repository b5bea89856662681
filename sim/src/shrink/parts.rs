//! Leaving parts of a plan's lists out.

use serde_json::Value;

/// Entries of a list of the plan; none if there is no such list.
pub(super) fn length(plan: &Value, list: &str) -> usize {
    plan.get(list).and_then(Value::as_array).map_or(0, Vec::len)
}

/// The plan without each run of `size` entries of the list, the last run first: what comes late is more often not needed.
pub(super) fn without_parts(plan: &Value, list: &str, size: usize) -> Vec<Value> {
    let length = length(plan, list);
    let mut starts: Vec<usize> = (0..length).step_by(size).collect();
    starts.reverse();
    starts.into_iter().map(|start| without(plan, list, start, (start + size).min(length))).collect()
}

fn without(plan: &Value, list: &str, from: usize, to: usize) -> Value {
    let mut smaller = plan.clone();
    if let Some(entries) = smaller.get_mut(list).and_then(Value::as_array_mut) {
        entries.drain(from..to);
    }
    smaller
}

#[cfg(test)]
mod tests {
    use super::without_parts;
    use serde_json::{Value, json};

    fn left(size: usize) -> Vec<Value> {
        let plan = json!({"faults": [1, 2, 3, 4, 5], "seed": 7});
        without_parts(&plan, "faults", size).into_iter().map(|plan| plan["faults"].clone()).collect()
    }

    #[test]
    fn each_part_is_left_out_once_the_last_first() {
        assert_eq!(left(5), [json!([])]);
        assert_eq!(left(2), [json!([1, 2, 3, 4]), json!([1, 2, 5]), json!([3, 4, 5])]);
        assert_eq!(left(1).len(), 5);
        assert!(without_parts(&json!({"faults": "none"}), "faults", 1).is_empty());
    }
}
