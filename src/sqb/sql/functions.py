"""Which functions row-level refresh knows: by name, and nothing that is not listed.

Scalars give the same value for the same arguments, today and tomorrow. A name that is missing
costs a full refresh; one that is listed wrongly would be a wrong result.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Deterministic functions of one row.
SCALARS = _words("""
    abs acos acosh add_months aes_decrypt aggregate array array_append array_compact
    array_contains array_distinct array_except array_insert array_intersect array_join
    array_max array_min array_position array_prepend array_remove array_repeat array_size
    array_sort array_union arrays_overlap  ascii asin asinh atan atan2 atanh
    base64 bigint bin binary bit_count bit_get bit_length boolean bround btrim cardinality
    cast cbrt ceil ceiling char char_length character_length chr coalesce concat concat_ws
    contains conv cos cosh cot crc32 csc date date_add date_diff date_format
    date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day
    dayofmonth dayofweek dayofyear decimal decode degrees double e element_at elt encode
    endswith equal_null exists exp expm1 extract factorial filter find_in_set flatten float
    floor forall format_number format_string from_json from_unixtime from_utc_timestamp get
    get_json_object getbit greatest hash hex hour hypot if ifnull ilike initcap instr int
    isnan isnotnull isnull json_array_length json_object_keys last_day lcase least left len
    length levenshtein like ln locate log log10 log1p log2 lower lpad ltrim luhn_check
    make_date make_timestamp map map_concat map_contains_key map_entries map_filter
    map_from_arrays map_from_entries map_keys map_values mask md5 minute mod month
    months_between named_struct nanvl negative next_day nullif nullifzero nvl nvl2
    octet_length overlay parse_url pi pmod position positive pow power printf quarter
    radians regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad rtrim
    sec second sentences sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign
    signum sin sinh size slice smallint sort_array soundex space split split_part sqrt
    startswith str_to_map string struct substr substring substring_index tan tanh timestamp
    timestamp_micros timestamp_millis timestamp_seconds tinyint to_binary to_char to_date
    to_json to_number to_timestamp to_timestamp_ntz to_unix_timestamp to_utc_timestamp
    to_varchar transform transform_keys transform_values translate trim trunc try_add
    try_cast try_divide try_element_at try_multiply try_subtract try_to_binary try_to_number
    try_to_timestamp typeof ucase unbase64 unhex unix_date unix_micros unix_millis
    unix_seconds upper url_decode url_encode weekday weekofyear width_bucket xpath xxhash64
    year zeroifnull zip_with dayname make_dt_interval make_interval make_ym_interval
    map_zip_with monthname reduce timestampadd timestampdiff to_timestamp_ltz try_make_timestamp
    try_mod
""")

#: Functions of a group. What can be said of each is said where groups are merged.
AGGREGATES = _words("""
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or
    bit_xor bool_and bool_or collect_list collect_set corr count count_if count_min_sketch
    covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
    stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance
""")

#: Functions that need OVER.
WINDOWS = _words("""
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
""")

#: Functions that make rows.
GENERATORS = _words("""
    explode explode_outer inline inline_outer posexplode posexplode_outer stack
""")

#: Words before a parenthesis that are no function.
SYNTAX = _words("""
    all and any array as between by case character cube dec decimal distinct div else escape
    except exists filter from group ignore ilike in intersect interval is like map not nulls
    numeric on or order over partition range respect rlike rollup rows select set sets some
    struct then union using values varchar when where within
""")
