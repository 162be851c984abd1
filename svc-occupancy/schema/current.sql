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

CREATE FUNCTION public.record_change_of_transition() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
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

CREATE TABLE public.lease (
    company_id bigint NOT NULL,
    id bigint NOT NULL,
    transition_id bigint NOT NULL,
    start_date date NOT NULL,
    end_date date,
    CONSTRAINT lease_end_date CHECK ((end_date >= start_date))
);

CREATE SEQUENCE public.lease_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

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

CREATE TABLE public.party (
    company_id bigint NOT NULL,
    id bigint NOT NULL,
    transition_id bigint NOT NULL,
    "position" smallint NOT NULL,
    first_name text,
    last_name text,
    email text,
    phone text,
    role text,
    external_id text,
    forgotten_at timestamp with time zone,
    CONSTRAINT party_email CHECK ((char_length(email) <= 150)),
    CONSTRAINT party_external_id CHECK ((char_length(external_id) <= 120)),
    CONSTRAINT party_first_name CHECK ((char_length(first_name) <= 80)),
    CONSTRAINT party_forgotten_without_a_trace CHECK (((forgotten_at IS NULL) OR (num_nonnulls(first_name, last_name, email, phone, external_id) = 0))),
    CONSTRAINT party_last_name CHECK ((char_length(last_name) <= 80)),
    CONSTRAINT party_phone CHECK ((char_length(phone) <= 20)),
    CONSTRAINT party_position CHECK ((("position" >= 0) AND ("position" <= 19))),
    CONSTRAINT party_role CHECK ((role = ANY (ARRAY['leaseholder'::text, 'guarantor'::text])))
);

CREATE SEQUENCE public.party_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.party_search (
    company_id bigint NOT NULL,
    id bigint NOT NULL,
    transition_id bigint NOT NULL,
    terms tsvector NOT NULL
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

CREATE SEQUENCE public.transition_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.transition (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.transition_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    property_id bigint NOT NULL,
    unit_id bigint NOT NULL,
    status text NOT NULL,
    move_out_date date,
    move_in_date date,
    projected_ready_on date,
    occupancy_source text,
    occupancy_fed_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    notice_external_id text,
    ntv_reason_code text,
    departure_destination_code text,
    notes text,
    vacated_on date,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    has_begun boolean DEFAULT true NOT NULL,
    predecessor_id bigint,
    began_at timestamp with time zone,
    planned_version bigint,
    document bytea,
    document_shape integer,
    CONSTRAINT transition_began_at CHECK ((has_begun OR (began_at IS NULL))),
    CONSTRAINT transition_begun_before_completed CHECK ((has_begun OR (status <> 'completed'::text))),
    CONSTRAINT transition_departure_destination_code CHECK ((char_length(departure_destination_code) <= 20000)),
    CONSTRAINT transition_fed_by_somebody CHECK (((occupancy_fed_at IS NULL) OR (occupancy_source IS NOT NULL))),
    CONSTRAINT transition_notes CHECK ((char_length(notes) <= 20000)),
    CONSTRAINT transition_notice_external_id CHECK ((char_length(notice_external_id) <= 120)),
    CONSTRAINT transition_ntv_reason_code CHECK ((char_length(ntv_reason_code) <= 20000)),
    CONSTRAINT transition_occupancy_source CHECK (((char_length(occupancy_source) >= 1) AND (char_length(occupancy_source) <= 40))),
    CONSTRAINT transition_planned_for_a_date CHECK ((has_begun OR (status <> 'active'::text) OR (move_in_date IS NOT NULL))),
    CONSTRAINT transition_planned_version CHECK (
CASE
    WHEN has_begun THEN (planned_version IS NULL)
    ELSE (NOT (planned_version IS DISTINCT FROM version))
END),
    CONSTRAINT transition_ready_after_move_out CHECK (((projected_ready_on IS NULL) OR (move_out_date IS NOT NULL))),
    CONSTRAINT transition_source CHECK ((source = ANY (ARRAY['api'::text, 'staff'::text, 'import'::text]))),
    CONSTRAINT transition_status CHECK ((status = ANY (ARRAY['active'::text, 'completed'::text, 'cancelled'::text]))),
    CONSTRAINT transition_updated_after_created CHECK ((updated_at >= created_at))
);

CREATE SEQUENCE public.turn_task_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.turn_task (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.turn_task_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    transition_id bigint NOT NULL,
    unit_id bigint NOT NULL,
    task_type text NOT NULL,
    status text NOT NULL,
    scheduled_date date,
    completed_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    stale_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    property_id bigint,
    assignee_id bigint,
    vendor_id bigint,
    "position" integer,
    CONSTRAINT turn_task_cancelled_at CHECK (((status = 'cancelled'::text) = (cancelled_at IS NOT NULL))),
    CONSTRAINT turn_task_completed_at CHECK (((status = 'completed'::text) = (completed_at IS NOT NULL))),
    CONSTRAINT turn_task_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text]))),
    CONSTRAINT turn_task_status CHECK ((status = ANY (ARRAY['open'::text, 'completed'::text, 'cancelled'::text]))),
    CONSTRAINT turn_task_task_type CHECK ((char_length(task_type) <= 200)),
    CONSTRAINT turn_task_updated_after_created CHECK ((updated_at >= created_at))
);

CREATE SEQUENCE public.turn_template_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.turn_template (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.turn_template_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    name text NOT NULL,
    property_id bigint,
    floorplan text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT turn_template_floorplan CHECK ((char_length(floorplan) <= 200)),
    CONSTRAINT turn_template_name CHECK ((char_length(name) <= 200))
);

CREATE TABLE public.turn_template_task (
    company_id bigint NOT NULL,
    template_id bigint NOT NULL,
    "position" integer NOT NULL,
    task_type text NOT NULL,
    days_after_move_out integer,
    assignee_id bigint,
    vendor_id bigint,
    CONSTRAINT turn_template_task_task_type CHECK ((char_length(task_type) <= 200))
);

CREATE TABLE public.unit (
    id bigint NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    company_id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    external_id text,
    property_id bigint NOT NULL,
    unit_number text,
    floorplan text
);

CREATE TABLE public.unit_state (
    company_id bigint NOT NULL,
    unit_id bigint NOT NULL,
    version bigint NOT NULL,
    unit_status text,
    projected_ready_on date,
    property_id bigint,
    CONSTRAINT unit_state_unit_status CHECK ((unit_status = ANY (ARRAY['Occupied'::text, 'Notice'::text, 'Vacant Not Ready'::text, 'Vacant Ready'::text, 'Down'::text])))
);

CREATE TABLE public.unit_status_change (
    company_id bigint NOT NULL,
    unit_id bigint NOT NULL,
    version bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    from_status text,
    to_status text NOT NULL,
    cause text NOT NULL,
    actor text NOT NULL,
    turn_id bigint,
    CONSTRAINT unit_status_change_cause CHECK ((cause = ANY (ARRAY['notice'::text, 'move_in'::text, 'board'::text, 'notice_cancelled'::text, 'vacated'::text, 'import'::text, 'turn_cancelled'::text, 'move_in_changed'::text]))),
    CONSTRAINT unit_status_change_from_status CHECK ((from_status = ANY (ARRAY['Occupied'::text, 'Notice'::text, 'Vacant Not Ready'::text, 'Vacant Ready'::text, 'Down'::text]))),
    CONSTRAINT unit_status_change_to_status CHECK ((to_status = ANY (ARRAY['Occupied'::text, 'Notice'::text, 'Vacant Not Ready'::text, 'Vacant Ready'::text, 'Down'::text])))
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

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_of_transition UNIQUE (company_id, transition_id);

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.outbox_confirmation
    ADD CONSTRAINT outbox_confirmation_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.party
    ADD CONSTRAINT party_order UNIQUE (company_id, transition_id, "position");

ALTER TABLE ONLY public.party
    ADD CONSTRAINT party_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.party_search
    ADD CONSTRAINT party_search_pkey PRIMARY KEY (company_id, id);

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

ALTER TABLE ONLY public.transition
    ADD CONSTRAINT transition_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.turn_task
    ADD CONSTRAINT turn_task_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.turn_template
    ADD CONSTRAINT turn_template_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.turn_template_task
    ADD CONSTRAINT turn_template_task_pkey PRIMARY KEY (company_id, template_id, "position");

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.unit_state
    ADD CONSTRAINT unit_state_pkey PRIMARY KEY (company_id, unit_id);

ALTER TABLE ONLY public.unit_status_change
    ADD CONSTRAINT unit_status_change_pkey PRIMARY KEY (company_id, unit_id, version);

ALTER TABLE ONLY public.vendor
    ADD CONSTRAINT vendor_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.withdrawn_record
    ADD CONSTRAINT withdrawn_record_pkey PRIMARY KEY (company_id, kind, id);

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

CREATE INDEX party_email ON public.party USING btree (company_id, lower(email), id) WHERE (email IS NOT NULL);

CREATE INDEX party_search_terms ON public.party_search USING gin (terms) WITH (fastupdate=off);

CREATE INDEX property_external_id ON public.property USING btree (company_id, external_id);

CREATE INDEX staff_external_id ON public.staff USING btree (company_id, external_id);

CREATE UNIQUE INDEX transition_active_in_unit ON public.transition USING btree (company_id, unit_id) WHERE ((status = 'active'::text) AND has_begun);

CREATE INDEX transition_changed ON public.transition USING btree (company_id, changed_xid, id);

CREATE INDEX transition_changes ON public.transition USING btree ((((company_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX transition_changes_of_property ON public.transition USING btree ((((property_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX transition_changes_of_unit ON public.transition USING btree ((((unit_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX transition_document_shape ON public.transition USING btree (document_shape, id);

CREATE UNIQUE INDEX transition_external_id ON public.transition USING btree (company_id, external_id) WHERE (source = 'import'::text);

CREATE INDEX transition_fed_external_id ON public.transition USING btree (company_id, external_id, unit_id, id) WHERE (source <> 'import'::text);

CREATE INDEX transition_page_of_property ON public.transition USING btree (company_id, property_id, id);

CREATE INDEX transition_page_of_property_and_status ON public.transition USING btree (hashtextextended(status, property_id), id);

CREATE INDEX transition_page_of_status ON public.transition USING btree (hashtextextended(status, company_id), id);

CREATE INDEX transition_page_of_unit ON public.transition USING btree (company_id, unit_id, id);

CREATE INDEX transition_page_of_unit_and_status ON public.transition USING btree (hashtextextended(status, unit_id), id);

CREATE INDEX transition_planned_in_unit ON public.transition USING btree (unit_id, move_in_date, id) WHERE ((status = 'active'::text) AND (NOT has_begun));

CREATE UNIQUE INDEX transition_successor ON public.transition USING btree (company_id, predecessor_id) WHERE ((status = 'active'::text) AND (predecessor_id IS NOT NULL));

CREATE INDEX transition_to_begin ON public.transition USING btree (company_id, move_in_date, id) WHERE ((status = 'active'::text) AND (NOT has_begun));

CREATE INDEX transition_to_vacate ON public.transition USING btree (company_id, move_out_date, id) WHERE ((status = 'active'::text) AND (move_out_date IS DISTINCT FROM vacated_on));

CREATE INDEX transition_updated ON public.transition USING btree (company_id, updated_at);

CREATE UNIQUE INDEX turn_task_external_id ON public.turn_task USING btree (company_id, external_id);

CREATE INDEX turn_task_of_transition ON public.turn_task USING btree (company_id, transition_id, id);

CREATE INDEX turn_task_open ON public.turn_task USING btree (company_id, COALESCE(scheduled_date, 'infinity'::date), id) WHERE (status = 'open'::text);

CREATE INDEX turn_task_open_in_property ON public.turn_task USING btree (company_id, property_id, COALESCE(scheduled_date, 'infinity'::date), id) WHERE (status = 'open'::text);

CREATE INDEX turn_task_open_in_unit ON public.turn_task USING btree (company_id, unit_id, id) WHERE (status = 'open'::text);

CREATE INDEX turn_task_open_of_assignee ON public.turn_task USING btree (company_id, assignee_id, COALESCE(scheduled_date, 'infinity'::date), id) WHERE ((status = 'open'::text) AND (assignee_id IS NOT NULL));

CREATE INDEX turn_task_open_of_vendor ON public.turn_task USING btree (company_id, vendor_id, COALESCE(scheduled_date, 'infinity'::date), id) WHERE ((status = 'open'::text) AND (vendor_id IS NOT NULL));

CREATE INDEX turn_task_open_unassigned ON public.turn_task USING btree (company_id, COALESCE(scheduled_date, 'infinity'::date), id) WHERE ((status = 'open'::text) AND (assignee_id IS NULL) AND (vendor_id IS NULL));

CREATE INDEX turn_task_to_tell_of ON public.turn_task USING btree (company_id, scheduled_date, id) WHERE ((status = 'open'::text) AND (stale_at IS NULL));

CREATE INDEX turn_task_unplaced ON public.turn_task USING btree (id) WHERE (property_id IS NULL);

CREATE UNIQUE INDEX turn_template_named ON public.turn_template USING btree (company_id, name, property_id, floorplan) NULLS NOT DISTINCT;

CREATE INDEX unit_external_id ON public.unit USING btree (company_id, external_id);

CREATE INDEX unit_page ON public.unit USING btree (company_id, id);

CREATE INDEX unit_page_of_property ON public.unit USING btree (company_id, property_id, id);

CREATE INDEX unit_state_board ON public.unit_state USING btree (company_id, unit_status, COALESCE(projected_ready_on, 'infinity'::date), unit_id) WHERE (unit_status <> 'Occupied'::text);

CREATE INDEX unit_state_board_of_property ON public.unit_state USING btree (company_id, property_id, unit_status, COALESCE(projected_ready_on, 'infinity'::date), unit_id) WHERE (unit_status <> 'Occupied'::text);

CREATE INDEX unit_state_unplaced ON public.unit_state USING btree (unit_id) WHERE (property_id IS NULL);

CREATE INDEX vendor_external_id ON public.vendor USING btree (company_id, external_id);

CREATE INDEX withdrawn_record_changed ON public.withdrawn_record USING btree (company_id, kind, changed_xid, id);

CREATE INDEX withdrawn_record_external_id ON public.withdrawn_record USING btree (company_id, kind, external_id);

CREATE TRIGGER transition_changed BEFORE UPDATE ON public.transition FOR EACH ROW EXECUTE FUNCTION public.record_change_of_transition();

CREATE TRIGGER transition_follows_property_by_property_id AFTER UPDATE ON public.property FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('transition', 'property_id', 'id', 'true');

CREATE TRIGGER transition_follows_unit_by_unit_id AFTER UPDATE ON public.unit FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('transition', 'unit_id', 'id', 'true');

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_company_id_transition_id_fkey FOREIGN KEY (company_id, transition_id) REFERENCES public.transition(company_id, id);

ALTER TABLE ONLY public.party
    ADD CONSTRAINT party_company_id_transition_id_fkey FOREIGN KEY (company_id, transition_id) REFERENCES public.lease(company_id, transition_id);

ALTER TABLE ONLY public.transition
    ADD CONSTRAINT transition_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);

ALTER TABLE ONLY public.transition
    ADD CONSTRAINT transition_unit_id_fkey FOREIGN KEY (unit_id) REFERENCES public.unit(id);

ALTER TABLE ONLY public.turn_task
    ADD CONSTRAINT turn_task_assignee_id_fkey FOREIGN KEY (assignee_id) REFERENCES public.staff(id);

ALTER TABLE ONLY public.turn_task
    ADD CONSTRAINT turn_task_company_id_transition_id_fkey FOREIGN KEY (company_id, transition_id) REFERENCES public.transition(company_id, id);

ALTER TABLE ONLY public.turn_task
    ADD CONSTRAINT turn_task_vendor_id_fkey FOREIGN KEY (vendor_id) REFERENCES public.vendor(id);

ALTER TABLE ONLY public.turn_template
    ADD CONSTRAINT turn_template_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);

ALTER TABLE ONLY public.turn_template_task
    ADD CONSTRAINT turn_template_task_assignee_id_fkey FOREIGN KEY (assignee_id) REFERENCES public.staff(id);

ALTER TABLE ONLY public.turn_template_task
    ADD CONSTRAINT turn_template_task_company_id_template_id_fkey FOREIGN KEY (company_id, template_id) REFERENCES public.turn_template(company_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.turn_template_task
    ADD CONSTRAINT turn_template_task_vendor_id_fkey FOREIGN KEY (vendor_id) REFERENCES public.vendor(id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.property(id);

ALTER TABLE ONLY public.unit_state
    ADD CONSTRAINT unit_state_unit_id_fkey FOREIGN KEY (unit_id) REFERENCES public.unit(id);
