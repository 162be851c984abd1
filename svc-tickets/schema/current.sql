CREATE FUNCTION public.delete_audit_of_ended_company(ended_id bigint, rows integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM audit WHERE id IN (
        SELECT id FROM audit WHERE company_id = ended_id
        AND EXISTS (SELECT FROM company WHERE company.id = ended_id AND is_sandbox AND ended)
        ORDER BY id LIMIT rows
    );
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

CREATE FUNCTION public.mark_dependants() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
DECLARE
    at_once integer := coalesce(nullif(current_setting('makeready.at_once', true), ''), '200');
    dependants text := 'SELECT company_id, id FROM '
        || TG_ARGV[0] || ' WHERE company_id = ANY (ARRAY[$1]) AND '
        || TG_ARGV[1] || ' = ANY (ARRAY[$2]) AND ('
        || TG_ARGV[3] || ') ORDER BY company_id, '
        || TG_ARGV[1] || ', id LIMIT 201';
    mark record;
    few integer;
BEGIN
    FOR mark IN
        SELECT DISTINCT (shown ->> 'company_id')::bigint AS company_id, (shown ->> TG_ARGV[2])::bigint AS refers_to
        FROM (VALUES (to_jsonb(OLD)), (to_jsonb(NEW))) AS both_rows (shown) WHERE shown ->> TG_ARGV[2] IS NOT NULL
    LOOP
        INSERT INTO changes_to_touch (company_id, record, refers_by, refers_to)
        VALUES (mark.company_id, TG_ARGV[0], TG_ARGV[1], mark.refers_to);
        CONTINUE WHEN at_once = 0;
        EXECUTE 'SELECT count(*) FROM (' || dependants || ') AS dependant' INTO few
        USING mark.company_id, mark.refers_to;
        CONTINUE WHEN few = 0 OR few > at_once;
        EXECUTE 'WITH free AS MATERIALIZED (' || dependants || ' FOR NO KEY UPDATE SKIP LOCKED) UPDATE ' || TG_ARGV[0]
            || ' AS record SET document = NULL, document_shape = NULL, changed_xid = pg_current_xact_id() FROM free'
            ' WHERE record.company_id = free.company_id AND record.id = free.id'
        USING mark.company_id, mark.refers_to;
        at_once := at_once - few;
        PERFORM set_config('makeready.at_once', at_once::text, true);
    END LOOP;
    RETURN NULL;
END $_$;

CREATE FUNCTION public.record_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$;

CREATE FUNCTION public.record_change_of_ticket() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    OLD.quiet_since := NEW.quiet_since;
    OLD.stale_due_at := NEW.stale_due_at;
    OLD.document := NEW.document;
    OLD.document_shape := NEW.document_shape;
    IF OLD *<> NEW THEN
        NEW.changed_xid := pg_current_xact_id();
        IF NOT is_stored THEN
            NEW.document := NULL; NEW.document_shape := NULL;
        END IF;
    END IF;
    RETURN NEW;
END $$;

CREATE TABLE public.asset (
    id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    company_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    external_id text,
    property_id bigint NOT NULL
);

CREATE TABLE public.audit (
    id bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    company_id bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    subject_id bigint NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    request_id text NOT NULL
);

ALTER TABLE public.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.changes_epoch (
    id integer DEFAULT 1 NOT NULL,
    epoch uuid DEFAULT gen_random_uuid() NOT NULL,
    system bigint DEFAULT (pg_control_system()).system_identifier NOT NULL,
    settled_xid xid8 DEFAULT '0'::xid8 NOT NULL,
    CONSTRAINT changes_epoch_one_row CHECK ((id = 1))
);

CREATE TABLE public.changes_to_touch (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    record text NOT NULL,
    refers_by text NOT NULL,
    refers_to bigint NOT NULL,
    after_id bigint DEFAULT 0 NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    since xid8 DEFAULT pg_snapshot_xmin(pg_current_snapshot()) NOT NULL,
    horizon xid8
);

ALTER TABLE public.changes_to_touch ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.changes_to_touch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.company (
    id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    is_sandbox boolean DEFAULT false NOT NULL,
    clock_offset interval DEFAULT '00:00:00'::interval NOT NULL,
    ended boolean DEFAULT false NOT NULL
);

CREATE TABLE public.idempotency (
    company_id bigint NOT NULL,
    api_key_id bigint NOT NULL,
    idempotency_key text NOT NULL,
    fingerprint bytea NOT NULL,
    status integer NOT NULL,
    reply bytea NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.import_batch (
    id bigint NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    company_id bigint NOT NULL,
    import_key text NOT NULL,
    kind text NOT NULL,
    ids bigint[] NOT NULL,
    versions bigint[] NOT NULL,
    before jsonb NOT NULL,
    beside jsonb NOT NULL,
    leaving bigint[],
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL
);

ALTER TABLE public.import_batch ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.import_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.inbox (
    event_id uuid NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.outbox (
    event_id uuid NOT NULL,
    subject text NOT NULL,
    message bytea NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    claimed_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    published_at timestamp with time zone
);

CREATE TABLE public.outbox_confirmation (
    consumer text NOT NULL,
    recorded_until timestamp with time zone NOT NULL
);

CREATE SEQUENCE public.pm_task_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.pm_task (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.pm_task_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    task_name text NOT NULL,
    status text DEFAULT 'Open'::text NOT NULL,
    property_id bigint NOT NULL,
    unit_id bigint,
    area text,
    asset_id bigint,
    due_date date NOT NULL,
    repeat_days integer,
    repeat_months integer,
    day_of_month integer,
    previous_id bigint,
    completed_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    stale_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    assignee_id bigint,
    CONSTRAINT pm_task_cancelled_at CHECK (((status = 'Cancelled'::text) = (cancelled_at IS NOT NULL))),
    CONSTRAINT pm_task_completed_at CHECK (((status = 'Completed'::text) = (completed_at IS NOT NULL))),
    CONSTRAINT pm_task_day_of_month CHECK (((repeat_months IS NULL) = (day_of_month IS NULL))),
    CONSTRAINT pm_task_place CHECK (((unit_id IS NULL) OR (area IS NULL))),
    CONSTRAINT pm_task_repeat CHECK (((repeat_days IS NULL) OR (repeat_months IS NULL))),
    CONSTRAINT pm_task_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text]))),
    CONSTRAINT pm_task_status CHECK ((status = ANY (ARRAY['Open'::text, 'Completed'::text, 'Cancelled'::text]))),
    CONSTRAINT pm_task_updated_after_created CHECK ((updated_at >= created_at))
);

CREATE TABLE public.property (
    id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    company_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    external_id text
);

CREATE TABLE public.reconciled (
    producer text NOT NULL,
    recorded_until timestamp with time zone NOT NULL
);

CREATE TABLE public.report_fact (
    company_id bigint NOT NULL,
    kind text NOT NULL,
    record_id bigint NOT NULL,
    state text NOT NULL,
    facts text NOT NULL
);

CREATE TABLE public.report_figure (
    company_id bigint NOT NULL,
    grain text NOT NULL,
    dimension text NOT NULL,
    property_id bigint NOT NULL,
    measure text NOT NULL,
    starts_on date NOT NULL,
    value text NOT NULL,
    amount bigint NOT NULL,
    histogram text
);

CREATE TABLE public.staff (
    id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    company_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    external_id text
);

CREATE SEQUENCE public.ticket_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.ticket (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.ticket_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    ticket_number integer,
    title text NOT NULL,
    description text,
    category text NOT NULL,
    subcategory text,
    priority text NOT NULL,
    status text NOT NULL,
    property_id bigint NOT NULL,
    unit_id bigint,
    asset_id bigint,
    unit_number text,
    room text,
    room_instance text,
    permission_to_enter boolean NOT NULL,
    preferred_access_time text,
    assignee_id bigint,
    vendor_id bigint,
    photo_url text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    cancellation_reason_code text,
    external_id text,
    source text NOT NULL,
    created_by_administrator_id bigint,
    quiet_since timestamp with time zone,
    stale_due_at timestamp with time zone,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    document bytea,
    document_shape integer,
    resident_asked boolean DEFAULT false NOT NULL,
    CONSTRAINT ticket_cancellation_reason_code CHECK ((cancellation_reason_code = ANY (ARRAY['duplicate_ticket'::text, 'no_access_repeated'::text, 'resident_cancelled'::text, 'resolved_independently'::text, 'scheduled_for_later'::text, 'see_notes'::text, 'wrong_property'::text]))),
    CONSTRAINT ticket_cancelled_at CHECK ((((status = 'Cancelled'::text) = (cancelled_at IS NOT NULL)) OR ((cancelled_at IS NULL) AND (external_id IS NOT NULL)))),
    CONSTRAINT ticket_category CHECK ((category = ANY (ARRAY['HVAC'::text, 'Plumbing'::text, 'Electrical'::text, 'Mechanical'::text, 'Life Safety'::text, 'Elevator'::text, 'Appliance'::text, 'Doors/Windows'::text, 'Flooring'::text, 'Painting'::text, 'Roofing'::text, 'Leak'::text, 'Pest Control'::text, 'Structural'::text, 'Grounds'::text, 'Parking Garage'::text, 'Pool'::text, 'Security'::text, 'Common Area'::text, 'General'::text, 'Other'::text]))),
    CONSTRAINT ticket_completed_at CHECK ((((status = 'Completed'::text) = (completed_at IS NOT NULL)) OR ((completed_at IS NULL) AND (external_id IS NOT NULL)))),
    CONSTRAINT ticket_priority CHECK ((priority = ANY (ARRAY['Low'::text, 'Medium'::text, 'High'::text, 'Emergency'::text]))),
    CONSTRAINT ticket_reason_of_a_cancelled_one CHECK (((cancellation_reason_code IS NULL) OR (status = 'Cancelled'::text))),
    CONSTRAINT ticket_source CHECK ((source = ANY (ARRAY['api'::text, 'staff'::text, 'resident_portal'::text, 'inspection'::text, 'import'::text]))),
    CONSTRAINT ticket_stale_due_at CHECK (((stale_due_at IS NULL) OR ((quiet_since IS NOT NULL) AND (stale_due_at > quiet_since)))),
    CONSTRAINT ticket_status CHECK ((status = ANY (ARRAY['Open'::text, 'In Progress'::text, 'On Hold'::text, 'Completed'::text, 'Cancelled'::text]))),
    CONSTRAINT ticket_title CHECK ((char_length(title) <= 150)),
    CONSTRAINT ticket_updated_after_created CHECK ((updated_at >= created_at))
);

CREATE TABLE public.ticket_comment (
    company_id bigint NOT NULL,
    ticket_id bigint NOT NULL,
    id bigint NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    administrator_id bigint,
    api_key_id bigint,
    author text,
    actor text,
    CONSTRAINT ticket_comment_actor CHECK (((author IS NULL) = (actor IS NULL))),
    CONSTRAINT ticket_comment_author CHECK (((api_key_id IS NULL) OR (administrator_id IS NOT NULL))),
    CONSTRAINT ticket_comment_body CHECK ((body <> ''::text)),
    CONSTRAINT ticket_comment_brought CHECK (((author IS NULL) <> (api_key_id IS NULL))),
    CONSTRAINT ticket_comment_kind CHECK ((kind = ANY (ARRAY['closing_note'::text, 'cancellation_notes'::text, 'comment'::text, 'photo'::text]))),
    CONSTRAINT ticket_comment_whose CHECK ((author = ANY (ARRAY['staff'::text, 'vendor'::text, 'resident'::text])))
);

CREATE SEQUENCE public.ticket_comment_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.ticket_number (
    property_id bigint NOT NULL,
    last integer NOT NULL
);

CREATE TABLE public.ticket_of_inspection_row (
    company_id bigint NOT NULL,
    inspection_id bigint NOT NULL,
    row_id bigint NOT NULL,
    ticket_id bigint NOT NULL
);

CREATE TABLE public.ticket_policy (
    company_id bigint NOT NULL,
    photo_required_to_complete boolean DEFAULT false NOT NULL,
    stale_after_hours integer DEFAULT 72 NOT NULL,
    CONSTRAINT ticket_policy_stale_after_hours CHECK (((stale_after_hours >= 1) AND (stale_after_hours <= 8760)))
);

CREATE TABLE public.ticket_search (
    company_id bigint NOT NULL,
    id bigint NOT NULL,
    version bigint NOT NULL,
    comment_id bigint NOT NULL,
    quiet_since timestamp with time zone,
    property_id bigint NOT NULL,
    unit_id bigint,
    asset_id bigint,
    assignee_id bigint,
    vendor_id bigint,
    status text NOT NULL,
    is_open boolean NOT NULL,
    priority text NOT NULL,
    category text NOT NULL,
    source text NOT NULL,
    opened bigint NOT NULL,
    urgency bigint NOT NULL,
    waiting bigint NOT NULL,
    terms tsvector NOT NULL
);

CREATE TABLE public.ticket_status_change (
    company_id bigint NOT NULL,
    ticket_id bigint NOT NULL,
    version bigint NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    cancellation_reason_code text,
    comment_id bigint,
    administrator_id bigint,
    api_key_id bigint,
    actor text,
    request_id text NOT NULL,
    CONSTRAINT ticket_status_change_author CHECK (((api_key_id IS NULL) OR (administrator_id IS NOT NULL))),
    CONSTRAINT ticket_status_change_cancellation_reason_code CHECK ((cancellation_reason_code = ANY (ARRAY['duplicate_ticket'::text, 'no_access_repeated'::text, 'resident_cancelled'::text, 'resolved_independently'::text, 'scheduled_for_later'::text, 'see_notes'::text, 'wrong_property'::text]))),
    CONSTRAINT ticket_status_change_from_status CHECK ((from_status = ANY (ARRAY['Open'::text, 'In Progress'::text, 'On Hold'::text, 'Completed'::text, 'Cancelled'::text]))),
    CONSTRAINT ticket_status_change_note_given CHECK (((api_key_id IS NULL) OR ((comment_id IS NOT NULL) = ((to_status = 'Completed'::text) OR (NOT (cancellation_reason_code IS DISTINCT FROM 'see_notes'::text)))))),
    CONSTRAINT ticket_status_change_reason CHECK (((cancellation_reason_code IS NULL) OR (to_status = 'Cancelled'::text))),
    CONSTRAINT ticket_status_change_reason_given CHECK (((api_key_id IS NULL) OR (to_status <> 'Cancelled'::text) OR (cancellation_reason_code IS NOT NULL))),
    CONSTRAINT ticket_status_change_says CHECK (((from_status <> to_status) OR (to_status = ANY (ARRAY['Completed'::text, 'Cancelled'::text])))),
    CONSTRAINT ticket_status_change_to_status CHECK ((to_status = ANY (ARRAY['Open'::text, 'In Progress'::text, 'On Hold'::text, 'Completed'::text, 'Cancelled'::text]))),
    CONSTRAINT ticket_status_change_version CHECK ((version > 1))
);

CREATE TABLE public.unit (
    id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    company_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    external_id text,
    property_id bigint NOT NULL,
    unit_number text
);

CREATE TABLE public.vendor (
    id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    company_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    external_id text,
    on_hold boolean DEFAULT false NOT NULL
);

CREATE TABLE public.withdrawn_record (
    company_id bigint NOT NULL,
    kind text NOT NULL,
    id bigint NOT NULL,
    version bigint NOT NULL,
    external_id text,
    record jsonb NOT NULL,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    withdrawn_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY public.asset
    ADD CONSTRAINT asset_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.changes_epoch
    ADD CONSTRAINT changes_epoch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.changes_to_touch
    ADD CONSTRAINT changes_to_touch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.company
    ADD CONSTRAINT company_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_claim PRIMARY KEY (company_id, api_key_id, idempotency_key);

ALTER TABLE ONLY public.import_batch
    ADD CONSTRAINT import_batch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.outbox_confirmation
    ADD CONSTRAINT outbox_confirmation_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_previous UNIQUE (company_id, previous_id);

ALTER TABLE ONLY public.property
    ADD CONSTRAINT property_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.reconciled
    ADD CONSTRAINT reconciled_pkey PRIMARY KEY (producer);

ALTER TABLE ONLY public.report_fact
    ADD CONSTRAINT report_fact_pkey PRIMARY KEY (company_id, kind, record_id);

ALTER TABLE ONLY public.report_figure
    ADD CONSTRAINT report_figure_pkey PRIMARY KEY (company_id, grain, dimension, property_id, measure, starts_on, value);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.ticket_comment
    ADD CONSTRAINT ticket_comment_pkey PRIMARY KEY (company_id, ticket_id, id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_number_in_property UNIQUE (property_id, ticket_number);

ALTER TABLE ONLY public.ticket_number
    ADD CONSTRAINT ticket_number_pkey PRIMARY KEY (property_id);

ALTER TABLE ONLY public.ticket_of_inspection_row
    ADD CONSTRAINT ticket_of_inspection_row_pkey PRIMARY KEY (company_id, inspection_id, row_id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.ticket_policy
    ADD CONSTRAINT ticket_policy_pkey PRIMARY KEY (company_id);

ALTER TABLE ONLY public.ticket_search
    ADD CONSTRAINT ticket_search_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.ticket_status_change
    ADD CONSTRAINT ticket_status_change_pkey PRIMARY KEY (company_id, ticket_id, version);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.vendor
    ADD CONSTRAINT vendor_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.withdrawn_record
    ADD CONSTRAINT withdrawn_record_pkey PRIMARY KEY (company_id, kind, id);

CREATE INDEX asset_external_id ON public.asset USING btree (company_id, external_id);

CREATE INDEX audit_of_actor ON public.audit USING btree (company_id, actor, id);

CREATE INDEX audit_of_actor_and_kind ON public.audit USING btree (hashtextextended(subject, hashtextextended(actor, company_id)), id);

CREATE INDEX audit_of_company ON public.audit USING btree (company_id, id);

CREATE INDEX audit_of_kind ON public.audit USING btree (company_id, subject, id);

CREATE INDEX audit_of_request ON public.audit USING btree (company_id, request_id, id);

CREATE INDEX audit_of_subject ON public.audit USING btree (company_id, subject, subject_id, id);

CREATE INDEX audit_recorded ON public.audit USING btree (company_id, recorded_at, id);

CREATE INDEX changes_to_touch_of ON public.changes_to_touch USING btree (record, refers_by, id);

CREATE INDEX changes_to_touch_since ON public.changes_to_touch USING btree (xid);

CREATE INDEX import_batch_leaving ON public.import_batch USING btree (company_id) WHERE (leaving IS NOT NULL);

CREATE INDEX import_batch_of ON public.import_batch USING btree (company_id, import_key, kind, id);

CREATE INDEX import_batch_recorded ON public.import_batch USING btree (recorded_at);

CREATE INDEX ix_idempotency_recorded_at ON public.idempotency USING btree (recorded_at);

CREATE INDEX ix_inbox_applied_at ON public.inbox USING btree (applied_at);

CREATE INDEX outbox_recorded ON public.outbox USING btree (recorded_at);

CREATE INDEX outbox_unpublished ON public.outbox USING btree (event_id) WHERE (published_at IS NULL);

CREATE INDEX pm_task_by_due ON public.pm_task USING btree (company_id, due_date, id);

CREATE INDEX pm_task_due ON public.pm_task USING btree (company_id, due_date) WHERE ((status = 'Open'::text) AND (stale_at IS NULL));

CREATE INDEX pm_task_of_asset_by_due ON public.pm_task USING btree (company_id, asset_id, due_date, id);

CREATE INDEX pm_task_of_property ON public.pm_task USING btree (company_id, property_id, id);

CREATE INDEX pm_task_of_property_by_due ON public.pm_task USING btree (company_id, property_id, due_date, id);

CREATE INDEX pm_task_of_unit_by_due ON public.pm_task USING btree (company_id, unit_id, due_date, id);

CREATE INDEX pm_task_open ON public.pm_task USING btree (company_id, id) WHERE (status = 'Open'::text);

CREATE INDEX pm_task_open_by_due ON public.pm_task USING btree (company_id, due_date, id) WHERE (status = 'Open'::text);

CREATE INDEX pm_task_open_of_assignee ON public.pm_task USING btree (company_id, assignee_id, due_date, id) WHERE ((status = 'Open'::text) AND (assignee_id IS NOT NULL));

CREATE INDEX property_external_id ON public.property USING btree (company_id, external_id);

CREATE INDEX staff_external_id ON public.staff USING btree (company_id, external_id);

CREATE INDEX ticket_changed ON public.ticket USING btree (company_id, changed_xid, id);

CREATE INDEX ticket_changes ON public.ticket USING btree ((((company_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX ticket_changes_of_property ON public.ticket USING btree ((((property_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX ticket_changes_of_unit ON public.ticket USING btree ((((unit_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX ticket_document_shape ON public.ticket USING btree (document_shape, id);

CREATE INDEX ticket_follows_assignee ON public.ticket USING btree (company_id, assignee_id, id) WHERE (assignee_id IS NOT NULL);

CREATE INDEX ticket_follows_vendor ON public.ticket USING btree (company_id, vendor_id, id) WHERE (vendor_id IS NOT NULL);

CREATE INDEX ticket_of_inspection_row_of_ticket ON public.ticket_of_inspection_row USING btree (company_id, ticket_id);

CREATE INDEX ticket_page_of_property ON public.ticket USING btree (company_id, property_id, id);

CREATE INDEX ticket_page_of_property_and_status ON public.ticket USING btree (hashtextextended(status, property_id), id);

CREATE INDEX ticket_page_of_status ON public.ticket USING btree (hashtextextended(status, company_id), id);

CREATE INDEX ticket_page_of_unit ON public.ticket USING btree (company_id, unit_id, id);

CREATE INDEX ticket_page_of_unit_and_status ON public.ticket USING btree (hashtextextended(status, unit_id), id);

CREATE INDEX ticket_search_of_asset ON public.ticket_search USING btree (company_id, asset_id, opened, id) WHERE (asset_id IS NOT NULL);

CREATE INDEX ticket_search_of_assignee ON public.ticket_search USING btree (company_id, assignee_id, opened, id) WHERE (assignee_id IS NOT NULL);

CREATE INDEX ticket_search_of_is_open ON public.ticket_search USING btree (company_id, is_open, opened, id);

CREATE INDEX ticket_search_of_property ON public.ticket_search USING btree (company_id, property_id, opened, id);

CREATE INDEX ticket_search_of_source ON public.ticket_search USING btree (company_id, source, opened, id);

CREATE INDEX ticket_search_of_unit ON public.ticket_search USING btree (company_id, unit_id, opened, id) WHERE (unit_id IS NOT NULL);

CREATE INDEX ticket_search_of_vendor ON public.ticket_search USING btree (company_id, vendor_id, opened, id) WHERE (vendor_id IS NOT NULL);

CREATE INDEX ticket_search_opened ON public.ticket_search USING btree (company_id, opened, id);

CREATE INDEX ticket_search_terms ON public.ticket_search USING gin (terms) WITH (fastupdate='on', gin_pending_list_limit='256');

CREATE INDEX ticket_search_urgency ON public.ticket_search USING btree (company_id, urgency, id);

CREATE INDEX ticket_search_waiting ON public.ticket_search USING btree (company_id, waiting, id);

CREATE INDEX ticket_stale_due ON public.ticket USING btree (company_id, stale_due_at) WHERE (stale_due_at IS NOT NULL);

CREATE INDEX ticket_updated ON public.ticket USING btree (company_id, updated_at);

CREATE INDEX unit_external_id ON public.unit USING btree (company_id, external_id);

CREATE INDEX vendor_external_id ON public.vendor USING btree (company_id, external_id);

CREATE INDEX withdrawn_record_changed ON public.withdrawn_record USING btree (company_id, kind, changed_xid, id);

CREATE INDEX withdrawn_record_external_id ON public.withdrawn_record USING btree (company_id, kind, external_id);

CREATE TRIGGER ticket_changed BEFORE UPDATE ON public.ticket FOR EACH ROW EXECUTE FUNCTION public.record_change_of_ticket();

CREATE TRIGGER ticket_follows_property_by_property_id AFTER UPDATE ON public.property FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('ticket', 'property_id', 'id', 'true');

CREATE TRIGGER ticket_follows_staff_by_assignee_id AFTER UPDATE ON public.staff FOR EACH ROW WHEN ((old.name IS DISTINCT FROM new.name)) EXECUTE FUNCTION public.mark_dependants('ticket', 'assignee_id', 'id', 'true');

CREATE TRIGGER ticket_follows_unit_by_unit_id AFTER UPDATE ON public.unit FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('ticket', 'unit_id', 'id', 'true');

CREATE TRIGGER ticket_follows_vendor_by_vendor_id AFTER UPDATE ON public.vendor FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('ticket', 'vendor_id', 'id', 'true');

ALTER TABLE ONLY public.asset
    ADD CONSTRAINT asset_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_after FOREIGN KEY (company_id, previous_id) REFERENCES public.pm_task(company_id, id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES public.asset(id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_assignee_id_fkey FOREIGN KEY (assignee_id) REFERENCES public.staff(id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);

ALTER TABLE ONLY public.pm_task
    ADD CONSTRAINT pm_task_unit_id_fkey FOREIGN KEY (unit_id) REFERENCES public.unit(id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES public.asset(id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_assignee_id_fkey FOREIGN KEY (assignee_id) REFERENCES public.staff(id);

ALTER TABLE ONLY public.ticket_comment
    ADD CONSTRAINT ticket_comment_of FOREIGN KEY (company_id, ticket_id) REFERENCES public.ticket(company_id, id);

ALTER TABLE ONLY public.ticket_number
    ADD CONSTRAINT ticket_number_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);

ALTER TABLE ONLY public.ticket_of_inspection_row
    ADD CONSTRAINT ticket_of_inspection_row_is FOREIGN KEY (company_id, ticket_id) REFERENCES public.ticket(company_id, id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);

ALTER TABLE ONLY public.ticket_status_change
    ADD CONSTRAINT ticket_status_change_comment FOREIGN KEY (company_id, ticket_id, comment_id) REFERENCES public.ticket_comment(company_id, ticket_id, id);

ALTER TABLE ONLY public.ticket_status_change
    ADD CONSTRAINT ticket_status_change_of FOREIGN KEY (company_id, ticket_id) REFERENCES public.ticket(company_id, id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_unit_id_fkey FOREIGN KEY (unit_id) REFERENCES public.unit(id);

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_vendor_id_fkey FOREIGN KEY (vendor_id) REFERENCES public.vendor(id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);
