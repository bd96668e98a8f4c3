-- more: merge: groups by their key
-- by: group_merge | affected_key | merge, group_merge | affected_key | merge, skip:NET_CHANGE_EMPTY, group_merge | affected_key | merge, group_merge | affected_key | merge
MODEL (materialized merge, unique_key [g]);
SELECT g, count(*) AS n, max(v) AS most FROM raw.sales WHERE g IS NOT NULL GROUP BY g

-- more: merge: the latest row of each key
-- by: affected_key | merge, affected_key | merge, skip:NET_CHANGE_EMPTY, affected_key | merge, affected_key | merge
MODEL (materialized merge, unique_key [g]);
SELECT g, id, v FROM (SELECT g, id, v, row_number() OVER (PARTITION BY g ORDER BY d DESC, id) AS rn FROM raw.sales WHERE g IS NOT NULL) x WHERE rn = 1

-- more: merge: a dimension looked up
-- by: append | affected_key | merge, affected_key | merge, affected_key | merge, affected_key | merge, append | affected_key | merge
MODEL (materialized merge, unique_key [name]);
SELECT d.name, count(s.id) AS n FROM raw.dims d LEFT JOIN raw.sales s ON s.k = d.k GROUP BY d.name

-- more: tracked: rows by their group
-- by: append | affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append | affected_key
MODEL (materialized tracked, group_key [g]);
SELECT g, id, v, f FROM raw.sales

-- more: tracked: a group of a joined table
-- by: append | affected_key, affected_key, affected_key, affected_key, append | affected_key
MODEL (materialized tracked, group_key [name]);
SELECT d.name, s.id, s.v FROM raw.sales s JOIN raw.dims d ON s.k = d.k
