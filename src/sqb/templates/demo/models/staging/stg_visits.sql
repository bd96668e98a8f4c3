SELECT visitor, seen_on
FROM raw_visits
