/**
 * A file as the first release wrote it (schema 1), dumped by the sqlite3 shell: key-1 cascades into
 * project, and in each of two hours key-1 used 400 tokens and project 30 of its own. The second
 * hour is still in the rows of the buckets. Declared limits were applied.
 */
export const SCHEMA_1_FILE = `
PRAGMA application_id = 0x7a61656c;
PRAGMA user_version = 1;
BEGIN;
CREATE TABLE namespaces (
    namespace_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    deleted_at_ms INTEGER,
    -- Grows with every change of limits, so that other processes notice it in their next transaction.
    config_version INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
INSERT INTO namespaces VALUES('oAh-9Rnub_d','default','active',1772366400000,NULL,1);
CREATE TABLE entities (
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    name TEXT NOT NULL,
    parent_id TEXT,
    cascades INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, entity_id)
  ) WITHOUT ROWID;
INSERT INTO entities VALUES('oAh-9Rnub_d','key-1','key-1','project',1,'{}',1772366400000);
INSERT INTO entities VALUES('oAh-9Rnub_d','project','project',NULL,0,'{}',1772366400000);
CREATE TABLE limits (
    namespace_id TEXT NOT NULL,
    resource TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    limits TEXT,
    settings TEXT,
    PRIMARY KEY (namespace_id, resource, entity_id)
  ) WITHOUT ROWID;
INSERT INTO limits VALUES('oAh-9Rnub_d','','','rpm:100/min tpm:10000/min','{}');
CREATE TABLE buckets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    resource TEXT NOT NULL,
    limits TEXT NOT NULL,
    balances TEXT NOT NULL,
    refilled_at_ms INTEGER NOT NULL,
    -- The hour that is being counted, as JSON: hourMs, requests, counters. Earlier hours are in the table usage.
    hour TEXT,
    UNIQUE (namespace_id, entity_id, resource)
  );
INSERT INTO buckets VALUES(1,'oAh-9Rnub_d','key-1','gpt-4','rpm:100/min tpm:10000/min','[99000,0,2000,9600000,0,800000]',1772370000000,'{"hourMs":1772370000000,"requests":1,"counters":{"rpm":1,"tpm":400}}');
INSERT INTO buckets VALUES(2,'oAh-9Rnub_d','project','gpt-4','rpm:100/min tpm:10000/min','[98000,0,4000,9570000,0,860000]',1772370000000,'{"hourMs":1772370000000,"requests":2,"counters":{"rpm":2,"tpm":430}}');
CREATE TABLE usage (
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    resource TEXT NOT NULL,
    hour_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    counters TEXT NOT NULL,
    PRIMARY KEY (namespace_id, entity_id, resource, hour_ms)
  ) WITHOUT ROWID;
INSERT INTO usage VALUES('oAh-9Rnub_d','key-1','gpt-4',1772366400000,1,'{"rpm":1,"tpm":400}');
INSERT INTO usage VALUES('oAh-9Rnub_d','project','gpt-4',1772366400000,2,'{"rpm":2,"tpm":430}');
CREATE TABLE audit (
    namespace_id TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    principal TEXT,
    resource TEXT,
    details TEXT NOT NULL,
    PRIMARY KEY (namespace_id, entity_id, event_id)
  ) WITHOUT ROWID;
INSERT INTO audit VALUES('oAh-9Rnub_d','$SYSTEM','01KJMMA2G00000F4C74F2CR961',1772366400000,'limits_set',NULL,NULL,'{"limits":[{"name":"rpm","capacity":100,"refillAmount":100,"refillPeriodSeconds":60},{"name":"tpm","capacity":10000,"refillAmount":10000,"refillPeriodSeconds":60}]}');
INSERT INTO audit VALUES('oAh-9Rnub_d','key-1','01KJMMA2G00002Z7R4AD74QJ48',1772366400000,'entity_created',NULL,NULL,'{"name":"key-1","parentId":"project","cascade":true,"metadata":{}}');
INSERT INTO audit VALUES('oAh-9Rnub_d','project','01KJMMA2G00001DJS96NHR6QER',1772366400000,'entity_created',NULL,NULL,'{"name":"project","cascade":false,"metadata":{}}');
CREATE TABLE provisioner (namespace_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO provisioner VALUES('oAh-9Rnub_d',4,'{"managedSystem":true,"managedResources":["gpt-4"],"managedEntities":{},"lastApplied":"2026-03-01T12:00:00.000Z","appliedHash":"abc","revision":4}');
CREATE TABLE versions (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), record TEXT NOT NULL);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('buckets',2);
CREATE UNIQUE INDEX namespaces_active ON namespaces (name) WHERE status = 'active';
CREATE INDEX entities_parent ON entities (namespace_id, parent_id, entity_id) WHERE parent_id IS NOT NULL;
CREATE INDEX limits_entity ON limits (namespace_id, entity_id);
CREATE INDEX buckets_resource ON buckets (namespace_id, resource, entity_id);
CREATE INDEX usage_hour ON usage (namespace_id, hour_ms);
CREATE INDEX audit_time ON audit (namespace_id, time_ms);
COMMIT;
`;
