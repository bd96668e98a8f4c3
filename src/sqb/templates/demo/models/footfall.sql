SELECT seen_on, count(DISTINCT visitor) AS visitors
FROM stg_visits
GROUP BY seen_on
