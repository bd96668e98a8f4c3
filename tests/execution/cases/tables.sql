-- The tables that all cases read, and what happens to them, step by step.
-- `sales` and `other` rewrite files (copy-on-write), `dims` and `odd` add delete files
-- (merge-on-read). The groups of sales, by `g`, each lead one life:
--   1 ends. 2: its sum becomes zero. 3: its values become NULL. 4: one of two equal extremes goes.
--   5: a row moves to group 6. 7: one of two equal rows goes (`note`, which no query of interest
--   reads, tells them apart). 8: only its note is written. 9: 0.0 becomes -0.0, a number NaN.
--   10 grows over a limit of three rows, 11 falls below it. NULL is a group, and a join key.

-- step: before
CREATE TABLE raw.sales (id INT, g INT, k INT, v DECIMAL(18,8), f DOUBLE, s STRING, d DATE, note STRING)
  USING iceberg TBLPROPERTIES ('write.delete.mode'='copy-on-write', 'write.update.mode'='copy-on-write', 'write.merge.mode'='copy-on-write');
CREATE TABLE raw.other (g INT, k INT, x BIGINT)
  USING iceberg TBLPROPERTIES ('write.delete.mode'='copy-on-write', 'write.update.mode'='copy-on-write', 'write.merge.mode'='copy-on-write');
CREATE TABLE raw.dims (k INT, name STRING, lo INT, note STRING)
  USING iceberg TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read');
CREATE TABLE raw.odd (id INT, k INT, tags ARRAY<STRING>, m MAP<STRING, INT>, st STRUCT<a: INT, z: DOUBLE>, z DOUBLE, big DECIMAL(38,18), at TIMESTAMP)
  USING iceberg TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read');
CREATE TABLE raw.still (k INT, name STRING) USING iceberg;
INSERT INTO raw.still VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (4, 'vier'), (NULL, 'none');
INSERT INTO raw.sales VALUES
  (1, 1, 1, 1.5, 1.5, 'a', DATE'2026-01-01', ''), (2, 1, 2, 2.5, 0.125, 'b', DATE'2026-01-02', ''),
  (3, 2, 1, 5.00000001, 0.25, 'a', DATE'2026-01-01', ''), (4, 2, 3, -4, 0.375, 'c', DATE'2026-01-03', ''),
  (5, 3, 2, 7, 0.5, 'a', DATE'2026-01-01', ''), (6, 3, NULL, NULL, NULL, NULL, NULL, ''),
  (7, 4, 4, 9, 0.5, 'z', DATE'2026-01-09', ''), (8, 4, 4, 9, 0.5, 'z', DATE'2026-01-09', ''), (9, 4, 5, 1, 0.625, 'a', DATE'2026-01-01', ''),
  (10, 5, 5, 3, 0.75, 'm', DATE'2026-01-04', ''), (11, 5, 1, 4, 0.875, 'n', DATE'2026-01-05', ''),
  (12, 6, 2, 2, 1.125, 'o', DATE'2026-01-06', ''),
  (13, 7, 3, 6, 1.25, 'p', DATE'2026-01-07', 'one'), (13, 7, 3, 6, 1.25, 'p', DATE'2026-01-07', 'two'),
  (14, 8, 3, 8, 1.75, 'q', DATE'2026-01-08', 'then'),
  (15, 9, 6, 1, 0.0, 'r', DATE'2026-01-01', ''), (16, 9, 6, 2, 2.0, 'r', DATE'2026-01-01', ''),
  (17, 10, 7, 1, 0.5, 'a', DATE'2026-01-01', ''), (18, 10, 7, 1, 0.5, 'b', DATE'2026-01-02', ''), (19, 10, 8, 1, 0.5, 'c', DATE'2026-01-03', ''),
  (20, 11, 7, 2, 0.5, 'a', DATE'2026-01-01', ''), (21, 11, 8, 2, 0.5, 'b', DATE'2026-01-02', ''), (22, 11, 8, 2, 0.5, 'c', DATE'2026-01-03', ''), (23, 11, 8, 2, 0.5, 'd', DATE'2026-01-04', ''),
  (24, NULL, NULL, 3, 0.5, NULL, DATE'2026-01-01', ''), (25, NULL, 1, NULL, NULL, 'e', NULL, ''), (26, 12, NULL, 4, 0.5, 'f', DATE'2026-01-01', '');
INSERT INTO raw.dims VALUES
  (1, 'one', 2, ''), (2, 'two', 3, ''), (3, 'three', 1, ''), (4, 'four', 4, ''), (4, 'vier', 4, ''), (5, 'five', 0, ''), (7, 'seven', 1, ''), (NULL, 'none', 1, '');
INSERT INTO raw.other VALUES (1, 1, 10), (2, 1, 20), (2, 1, 20), (3, NULL, 30), (NULL, 2, NULL), (NULL, 2, NULL), (4, 4, 40), (20, 9, 50), (21, 9, 60);
INSERT INTO raw.odd VALUES
  (1, 1, array('x', 'y'), map('a', 1), named_struct('a', 1, 'z', 0.0D), 0.0, 1.000000000000000001, TIMESTAMP'2026-01-01 10:00:00.000001'),
  (2, 1, array('x', NULL, 'x'), map(), named_struct('a', CAST(NULL AS INT), 'z', 1.0D), 1.5, 9999999999999999999.999999999999999999, TIMESTAMP'2026-01-02 10:00:00'),
  (3, 2, array(), NULL, NULL, double('NaN'), -1, NULL), (4, NULL, NULL, map('b', 2), named_struct('a', 4, 'z', -0.0D), NULL, NULL, TIMESTAMP'2026-01-01 10:00:00.000001');

-- step: rows come
INSERT INTO raw.sales VALUES (30, 1, 1, 0.00000001, 0.375, 'a', DATE'2026-01-02', ''), (31, 13, 2, 5, 0.125, 'x', DATE'2026-01-05', ''), (31, 13, 2, 5, 0.125, 'x', DATE'2026-01-05', ''), (32, NULL, NULL, NULL, NULL, NULL, NULL, ''), (33, 4, 4, 12, 0.25, 'zz', DATE'2026-01-10', '');
INSERT INTO raw.sales VALUES (34, 3, 9, 0, 0.0, '', DATE'2026-01-01', '');
INSERT INTO raw.odd VALUES (5, 2, array('y'), map('c', 3), named_struct('a', 5, 'z', 5.0D), 7.5, 5.000000000000000005, TIMESTAMP'2026-01-03 00:00:00'), (5, 2, array('y'), map('c', 3), named_struct('a', 5, 'z', 5.0D), 7.5, 5.000000000000000005, TIMESTAMP'2026-01-03 00:00:00');

-- step: everything moves
DELETE FROM raw.sales WHERE g = 1;
UPDATE raw.sales SET v = -5.00000001 WHERE id = 4;
UPDATE raw.sales SET v = NULL, f = NULL WHERE g = 3;
DELETE FROM raw.sales WHERE id = 8;
UPDATE raw.sales SET g = 6, k = 3 WHERE id = 10;
DELETE FROM raw.sales WHERE g = 7 AND note = 'two';
UPDATE raw.sales SET note = 'now' WHERE g = 8;
UPDATE raw.sales SET f = IF(id = 15, -0.0D, double('NaN')) WHERE g = 9;
INSERT INTO raw.sales VALUES (40, 10, 7, 1, 0.5, 'd', DATE'2026-01-04', ''), (41, 14, 6, 2, 0.5, 'g', DATE'2026-01-05', ''), (42, NULL, 2, 1, 0.5, 'g', DATE'2026-01-05', '');
DELETE FROM raw.sales WHERE id IN (21, 22, 25, 26);
UPDATE raw.sales SET k = NULL WHERE id = 5;
UPDATE raw.sales SET k = 4 WHERE id = 24;
UPDATE raw.dims SET name = 'ONE' WHERE k = 1;
UPDATE raw.dims SET lo = 9 WHERE k = 2;
DELETE FROM raw.dims WHERE k = 3 OR name = 'vier' OR name = 'none';
INSERT INTO raw.dims VALUES (5, 'fünf', 0, ''), (6, 'six', 1, ''), (8, 'eight', 2, '');
UPDATE raw.other SET x = x + 1 WHERE k = 4;
DELETE FROM raw.other WHERE g = 1 OR (g IS NULL AND k = 2);
INSERT INTO raw.other VALUES (2, 1, 20), (NULL, 2, NULL), (13, 2, 1), (1, 2, 2);
UPDATE raw.odd SET z = -0.0D, tags = array('y', 'x') WHERE id = 1;
UPDATE raw.odd SET st = named_struct('a', st.a, 'z', -st.z) WHERE id IN (1, 4);
UPDATE raw.odd SET m = map('a', 9), big = 1.000000000000000002 WHERE id = 4;
DELETE FROM raw.odd WHERE id = 2;

-- step: a dimension is renamed
UPDATE raw.dims SET name = 'Seven', note = 'why' WHERE k = 7;
UPDATE raw.sales SET note = 'again' WHERE g IN (5, 6);
CALL lake.system.rewrite_data_files(table => 'raw.other', options => map('rewrite-all', 'true'));

-- step: all rows go
DELETE FROM raw.sales;
DELETE FROM raw.other;

-- step: rows come back
INSERT INTO raw.sales VALUES (50, 1, 1, 1, 1.0, 'a', DATE'2026-01-01', ''), (51, NULL, 4, 2, 2.0, 'b', NULL, ''), (51, NULL, 4, 2, 2.0, 'b', NULL, '');
INSERT INTO raw.other VALUES (1, 1, 5), (1, 1, 5);
UPDATE raw.dims SET lo = lo + 1;
