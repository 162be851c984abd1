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

CREATE FUNCTION public.record_change_of_asset() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    OLD.searched_version := NEW.searched_version;
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

CREATE FUNCTION public.record_change_of_inspection() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    OLD.published_status := NEW.published_status;
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

CREATE FUNCTION public.record_change_of_meter() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    OLD.searched_version := NEW.searched_version;
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

CREATE FUNCTION public.record_change_of_property() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    OLD.searched_version := NEW.searched_version;
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

CREATE FUNCTION public.record_change_of_unit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    OLD.searched_version := NEW.searched_version;
    OLD.occupancy_version := NEW.occupancy_version;
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

CREATE FUNCTION public.record_change_of_vendor() RETURNS trigger
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

CREATE SEQUENCE public.asset_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.asset (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.asset_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    property_id bigint NOT NULL,
    name text NOT NULL,
    category text NOT NULL,
    sub_category text,
    asset_tag text,
    make text NOT NULL,
    model text NOT NULL,
    serial_number text,
    status text NOT NULL,
    unit_id bigint,
    location_id bigint,
    year integer,
    installed_on date,
    warranty_expires_on date,
    expected_life_years integer,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    searched_version bigint DEFAULT 0 NOT NULL,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    document bytea,
    document_shape integer,
    CONSTRAINT asset_expected_life_years CHECK (((expected_life_years >= 0) AND (expected_life_years <= 1000))),
    CONSTRAINT asset_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text]))),
    CONSTRAINT asset_stands_in_one_place CHECK (((unit_id IS NULL) OR (location_id IS NULL))),
    CONSTRAINT asset_status CHECK ((status = ANY (ARRAY['Active'::text, 'Needs Service'::text, 'Out of Service'::text, 'Retired'::text]))),
    CONSTRAINT asset_updated_after_created CHECK ((updated_at >= created_at)),
    CONSTRAINT asset_year CHECK (((year >= 1000) AND (year <= 2999)))
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

CREATE SEQUENCE public.building_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.building (
    company_id bigint NOT NULL,
    property_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.building_id'::regclass) NOT NULL,
    name text NOT NULL,
    external_id text
);

CREATE SEQUENCE public.business_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.business (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.business_id'::regclass) NOT NULL,
    legal_name text NOT NULL,
    website text
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

CREATE TABLE public.copied_place (
    company_id bigint NOT NULL,
    kind text NOT NULL,
    copied_from bigint NOT NULL,
    id bigint NOT NULL
);

CREATE SEQUENCE public.floor_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.floor (
    company_id bigint NOT NULL,
    property_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.floor_id'::regclass) NOT NULL,
    name text NOT NULL,
    external_id text,
    building_id bigint
);

CREATE SEQUENCE public.floorplan_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.floorplan (
    company_id bigint NOT NULL,
    property_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.floorplan_id'::regclass) NOT NULL,
    name text NOT NULL,
    external_id text,
    bedrooms integer,
    bathrooms double precision,
    square_feet integer,
    CONSTRAINT floorplan_bathrooms CHECK (((bathrooms >= (0)::double precision) AND (bathrooms <= (1000)::double precision))),
    CONSTRAINT floorplan_bedrooms CHECK (((bedrooms >= 0) AND (bedrooms <= 1000))),
    CONSTRAINT floorplan_square_feet CHECK (((square_feet >= 0) AND (square_feet <= 10000000)))
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

CREATE SEQUENCE public.inspection_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.inspection (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.inspection_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    property_id bigint NOT NULL,
    unit_id bigint,
    inspection_number integer,
    title text,
    inspection_type text,
    status text NOT NULL,
    published_status text GENERATED ALWAYS AS (
CASE status
    WHEN 'Finalized'::text THEN 'Completed'::text
    ELSE status
END) STORED,
    result text,
    scheduled_date date,
    completed_date date,
    assignee_id bigint,
    is_compliance_inspection boolean NOT NULL,
    compliance_type text,
    kind text NOT NULL,
    engagement text,
    created_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    stale_announced_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    cancelled_by text,
    cancel_reason text,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    document bytea,
    document_shape integer,
    CONSTRAINT inspection_cancelled_at CHECK (((kind <> 'cancelled'::text) OR ((cancelled_at IS NOT NULL) AND (cancelled_by IS NOT NULL)))),
    CONSTRAINT inspection_engagement_of_a_walk CHECK (((engagement IS NULL) OR (kind <> 'operations'::text))),
    CONSTRAINT inspection_inspection_number CHECK (((inspection_number >= 1) AND (inspection_number <= 2147483647))),
    CONSTRAINT inspection_kind CHECK ((kind = ANY (ARRAY['operations'::text, 'consulting_walk'::text, 'acceptance_walk'::text, 'cancelled'::text]))),
    CONSTRAINT inspection_result CHECK ((result = ANY (ARRAY['passed'::text, 'failed'::text]))),
    CONSTRAINT inspection_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text]))),
    CONSTRAINT inspection_status CHECK ((status = ANY (ARRAY['Scheduled'::text, 'In Progress'::text, 'Completed'::text, 'Finalized'::text])))
);

CREATE TABLE public.inspection_number (
    company_id bigint NOT NULL,
    property_id bigint NOT NULL,
    last integer NOT NULL
);

CREATE SEQUENCE public.inspection_row_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.inspection_row (
    company_id bigint NOT NULL,
    inspection_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.inspection_row_id'::regclass) NOT NULL,
    "position" integer NOT NULL,
    label text NOT NULL,
    result text,
    note text,
    category text,
    priority text,
    asset_id bigint,
    photo_url text,
    failed_at timestamp with time zone,
    CONSTRAINT inspection_row_failed_at CHECK (((result <> 'failed'::text) OR (failed_at IS NOT NULL))),
    CONSTRAINT inspection_row_result CHECK ((result = ANY (ARRAY['passed'::text, 'failed'::text])))
);

CREATE SEQUENCE public.inspection_template_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.inspection_template (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.inspection_template_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    name text NOT NULL,
    inspection_type text,
    is_default boolean NOT NULL,
    rows text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT inspection_template_default_of_a_type CHECK (((NOT is_default) OR (inspection_type IS NOT NULL)))
);

CREATE SEQUENCE public.location_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.location (
    company_id bigint NOT NULL,
    property_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.location_id'::regclass) NOT NULL,
    name text NOT NULL,
    external_id text,
    location_type text NOT NULL,
    CONSTRAINT location_location_type CHECK ((location_type = ANY (ARRAY['mechanical_room'::text, 'common_area'::text, 'amenity'::text, 'parking'::text, 'storage'::text, 'exterior'::text, 'other'::text])))
);

CREATE SEQUENCE public.meter_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.meter (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.meter_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    property_id bigint NOT NULL,
    name text NOT NULL,
    utility_type text NOT NULL,
    scope text NOT NULL,
    unit_id bigint,
    meter_number text,
    unit_of_measure text,
    is_active boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    searched_version bigint DEFAULT 0 NOT NULL,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    document bytea,
    document_shape integer,
    CONSTRAINT meter_of_a_unit_names_it CHECK (((scope = 'unit'::text) = (unit_id IS NOT NULL))),
    CONSTRAINT meter_scope CHECK ((scope = ANY (ARRAY['master'::text, 'common_area'::text, 'unit'::text]))),
    CONSTRAINT meter_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text]))),
    CONSTRAINT meter_updated_after_created CHECK ((updated_at >= created_at)),
    CONSTRAINT meter_utility_type CHECK ((utility_type = ANY (ARRAY['electric'::text, 'gas'::text, 'water'::text, 'sewer'::text, 'trash'::text, 'other'::text])))
);

CREATE SEQUENCE public.notice_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.notice (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.notice_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    property_id bigint NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    "when" text NOT NULL,
    area text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    external_id text,
    source text NOT NULL,
    CONSTRAINT notice_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text])))
);

CREATE TABLE public.notice_unit (
    company_id bigint NOT NULL,
    notice_id bigint NOT NULL,
    unit_id bigint NOT NULL,
    property_id bigint NOT NULL
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

CREATE TABLE public.place_search (
    company_id bigint NOT NULL,
    kind text NOT NULL,
    id bigint NOT NULL,
    property_id bigint NOT NULL,
    name_order text NOT NULL,
    words tsvector NOT NULL,
    CONSTRAINT place_search_kind CHECK ((kind = ANY (ARRAY['property'::text, 'unit'::text, 'asset'::text, 'meter'::text])))
);

CREATE SEQUENCE public.property_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.property (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.property_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    name text NOT NULL,
    address text NOT NULL,
    city text,
    state text,
    postal_code text,
    building_type text,
    construction_type text,
    unit_count integer,
    year_built integer,
    latitude double precision,
    longitude double precision,
    created_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    searched_version bigint DEFAULT 0 NOT NULL,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    document bytea,
    document_shape integer,
    CONSTRAINT property_latitude CHECK (((latitude >= ('-90'::integer)::double precision) AND (latitude <= (90)::double precision))),
    CONSTRAINT property_longitude CHECK (((longitude >= ('-180'::integer)::double precision) AND (longitude <= (180)::double precision))),
    CONSTRAINT property_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text]))),
    CONSTRAINT property_unit_count CHECK (((unit_count >= 0) AND (unit_count <= 10000000))),
    CONSTRAINT property_year_built CHECK (((year_built >= 1000) AND (year_built <= 2999)))
);

CREATE SEQUENCE public.reading_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.reading (
    company_id bigint NOT NULL,
    meter_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.reading_id'::regclass) NOT NULL,
    period_start timestamp with time zone NOT NULL,
    period_end timestamp with time zone NOT NULL,
    consumption double precision NOT NULL,
    cost double precision,
    created_at timestamp with time zone NOT NULL,
    is_estimated boolean NOT NULL,
    unit_of_measure text,
    external_id text,
    source text NOT NULL,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    CONSTRAINT reading_consumption CHECK (((consumption >= ('-1000000000000000'::bigint)::double precision) AND (consumption <= ('1000000000000000'::bigint)::double precision))),
    CONSTRAINT reading_cost CHECK (((cost >= ('-1000000000000000'::bigint)::double precision) AND (cost <= ('1000000000000000'::bigint)::double precision))),
    CONSTRAINT reading_ends_after_it_starts CHECK ((period_end >= period_start)),
    CONSTRAINT reading_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text, 'api'::text])))
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

CREATE TABLE public.unit (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.location_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    property_id bigint NOT NULL,
    name text NOT NULL,
    unit_number text,
    floorplan_id bigint,
    building_id bigint,
    floor_id bigint,
    created_at timestamp with time zone NOT NULL,
    external_id text,
    source text NOT NULL,
    unit_status text,
    projected_ready_on date,
    occupancy_version bigint DEFAULT 0 NOT NULL,
    searched_version bigint DEFAULT 0 NOT NULL,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    document bytea,
    document_shape integer,
    CONSTRAINT unit_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text]))),
    CONSTRAINT unit_unit_status CHECK ((unit_status = ANY (ARRAY['Occupied'::text, 'Notice'::text, 'Vacant Not Ready'::text, 'Vacant Ready'::text, 'Down'::text])))
);

CREATE SEQUENCE public.vendor_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.vendor (
    company_id bigint NOT NULL,
    id bigint DEFAULT nextval('public.vendor_id'::regclass) NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    business_id bigint NOT NULL,
    nickname text,
    avg_rating double precision,
    rating_count integer NOT NULL,
    is_active boolean NOT NULL,
    property_visibility text NOT NULL,
    onboarded_at timestamp with time zone NOT NULL,
    retired_at timestamp with time zone,
    last_compliance_state text,
    external_id text,
    source text NOT NULL,
    on_hold boolean DEFAULT false NOT NULL,
    hold_reason text,
    held_at timestamp with time zone,
    insurance_tracked boolean DEFAULT false NOT NULL,
    insurance_expires_on date,
    lapse_held_for date,
    compliance_due_on date,
    changed_xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    document bytea,
    document_shape integer,
    CONSTRAINT vendor_avg_rating CHECK (((avg_rating >= (0)::double precision) AND (avg_rating <= (100)::double precision))),
    CONSTRAINT vendor_hold_has_a_reason CHECK ((on_hold = (hold_reason IS NOT NULL))),
    CONSTRAINT vendor_hold_has_an_instant CHECK (((NOT on_hold) OR (held_at IS NOT NULL))),
    CONSTRAINT vendor_insurance_is_tracked CHECK ((insurance_tracked OR (num_nonnulls(insurance_expires_on, lapse_held_for, compliance_due_on) = 0))),
    CONSTRAINT vendor_last_compliance_state CHECK ((last_compliance_state = ANY (ARRAY['compliant'::text, 'expiring'::text, 'noncompliant'::text, 'missing'::text, 'unknown'::text]))),
    CONSTRAINT vendor_property_visibility CHECK ((property_visibility = ANY (ARRAY['all_properties'::text, 'selected_properties'::text]))),
    CONSTRAINT vendor_rating_count CHECK (((rating_count >= 0) AND (rating_count <= 10000000))),
    CONSTRAINT vendor_source CHECK ((source = ANY (ARRAY['staff'::text, 'import'::text])))
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
    ADD CONSTRAINT asset_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.asset
    ADD CONSTRAINT asset_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.building
    ADD CONSTRAINT building_pkey PRIMARY KEY (company_id, property_id, id);

ALTER TABLE ONLY public.business
    ADD CONSTRAINT business_legal_name UNIQUE (company_id, legal_name);

ALTER TABLE ONLY public.business
    ADD CONSTRAINT business_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.changes_epoch
    ADD CONSTRAINT changes_epoch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.changes_to_touch
    ADD CONSTRAINT changes_to_touch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.company
    ADD CONSTRAINT company_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.copied_place
    ADD CONSTRAINT copied_place_pkey PRIMARY KEY (company_id, kind, copied_from);

ALTER TABLE ONLY public.floor
    ADD CONSTRAINT floor_pkey PRIMARY KEY (company_id, property_id, id);

ALTER TABLE ONLY public.floorplan
    ADD CONSTRAINT floorplan_pkey PRIMARY KEY (company_id, property_id, id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_claim PRIMARY KEY (company_id, api_key_id, idempotency_key);

ALTER TABLE ONLY public.import_batch
    ADD CONSTRAINT import_batch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.inspection
    ADD CONSTRAINT inspection_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.inspection
    ADD CONSTRAINT inspection_number_in_property UNIQUE (company_id, property_id, inspection_number);

ALTER TABLE ONLY public.inspection_number
    ADD CONSTRAINT inspection_number_pkey PRIMARY KEY (company_id, property_id);

ALTER TABLE ONLY public.inspection
    ADD CONSTRAINT inspection_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.inspection_row
    ADD CONSTRAINT inspection_row_pkey PRIMARY KEY (company_id, inspection_id, id);

ALTER TABLE ONLY public.inspection_row
    ADD CONSTRAINT inspection_row_position UNIQUE (company_id, inspection_id, "position");

ALTER TABLE ONLY public.inspection_template
    ADD CONSTRAINT inspection_template_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.location
    ADD CONSTRAINT location_pkey PRIMARY KEY (company_id, property_id, id);

ALTER TABLE ONLY public.meter
    ADD CONSTRAINT meter_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.meter
    ADD CONSTRAINT meter_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.notice
    ADD CONSTRAINT notice_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.notice
    ADD CONSTRAINT notice_of_property UNIQUE (company_id, property_id, id);

ALTER TABLE ONLY public.notice
    ADD CONSTRAINT notice_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.notice_unit
    ADD CONSTRAINT notice_unit_pkey PRIMARY KEY (company_id, notice_id, unit_id);

ALTER TABLE ONLY public.outbox_confirmation
    ADD CONSTRAINT outbox_confirmation_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.place_search
    ADD CONSTRAINT place_search_pkey PRIMARY KEY (company_id, kind, id);

ALTER TABLE ONLY public.property
    ADD CONSTRAINT property_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.property
    ADD CONSTRAINT property_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.reading
    ADD CONSTRAINT reading_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.reading
    ADD CONSTRAINT reading_pkey PRIMARY KEY (company_id, meter_id, id);

ALTER TABLE ONLY public.reconciled
    ADD CONSTRAINT reconciled_pkey PRIMARY KEY (producer);

ALTER TABLE ONLY public.report_fact
    ADD CONSTRAINT report_fact_pkey PRIMARY KEY (company_id, kind, record_id);

ALTER TABLE ONLY public.report_figure
    ADD CONSTRAINT report_figure_pkey PRIMARY KEY (company_id, grain, dimension, property_id, measure, starts_on, value);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_of_company UNIQUE (company_id, id);

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_page_of_property UNIQUE (company_id, property_id, id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.vendor
    ADD CONSTRAINT vendor_external_id UNIQUE (company_id, external_id);

ALTER TABLE ONLY public.vendor
    ADD CONSTRAINT vendor_pkey PRIMARY KEY (company_id, id);

ALTER TABLE ONLY public.withdrawn_record
    ADD CONSTRAINT withdrawn_record_pkey PRIMARY KEY (company_id, kind, id);

CREATE INDEX asset_changed ON public.asset USING btree (company_id, changed_xid, id);

CREATE INDEX asset_changes ON public.asset USING btree ((((company_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX asset_changes_of_property ON public.asset USING btree ((((property_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX asset_changes_of_unit ON public.asset USING btree ((((unit_id << 30) # (id >> 14))), status, updated_at);

CREATE INDEX asset_document_shape ON public.asset USING btree (document_shape, id);

CREATE INDEX asset_names ON public.asset USING btree (company_id, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX asset_names_of_category ON public.asset USING btree (company_id, category, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX asset_names_of_property ON public.asset USING btree (company_id, property_id, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX asset_names_of_property_and_status ON public.asset USING btree (company_id, property_id, status, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX asset_names_of_status ON public.asset USING btree (company_id, status, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX asset_page_of_property ON public.asset USING btree (company_id, property_id, id);

CREATE INDEX asset_page_of_property_and_status ON public.asset USING btree (hashtextextended(status, property_id), id);

CREATE INDEX asset_page_of_status ON public.asset USING btree (hashtextextended(status, company_id), id);

CREATE INDEX asset_page_of_unit ON public.asset USING btree (company_id, unit_id, id);

CREATE INDEX asset_page_of_unit_and_status ON public.asset USING btree (hashtextextended(status, unit_id), id);

CREATE INDEX asset_unsearched ON public.asset USING btree (company_id, id) WHERE (searched_version <> version);

CREATE INDEX asset_updated ON public.asset USING btree (company_id, updated_at);

CREATE INDEX asset_warranties ON public.asset USING btree (company_id, warranty_expires_on, id) WHERE (warranty_expires_on IS NOT NULL);

CREATE INDEX audit_of_actor ON public.audit USING btree (company_id, actor, id);

CREATE INDEX audit_of_actor_and_kind ON public.audit USING btree (hashtextextended(subject, hashtextextended(actor, company_id)), id);

CREATE INDEX audit_of_company ON public.audit USING btree (company_id, id);

CREATE INDEX audit_of_kind ON public.audit USING btree (company_id, subject, id);

CREATE INDEX audit_of_request ON public.audit USING btree (company_id, request_id, id);

CREATE INDEX audit_of_subject ON public.audit USING btree (company_id, subject, subject_id, id);

CREATE INDEX audit_recorded ON public.audit USING btree (company_id, recorded_at, id);

CREATE UNIQUE INDEX building_name ON public.building USING btree (property_id, name);

CREATE INDEX business_words ON public.business USING gin (array_to_tsvector(string_to_array(regexp_replace(btrim(regexp_replace(regexp_replace(regexp_replace(btrim(regexp_replace(translate(replace(translate(regexp_replace(NORMALIZE(legal_name, NFKD), '[\u0300-\u036f]'::text, ''::text, 'g'::text), 'ABCDEFGHIJKLMNOPQRSTUVWXYZΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯĐØŁÆŒÞđøłıςґҐ'::text, 'abcdefghijklmnopqrstuvwxyzαβγδεζηθικλμνξοπρστυφχψωђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъыьэюяdolæœþdoliσгг'::text), 'ß'::text, 'ss'::text), '!"#$&''()*+,-./:;<=>?@[\]^_`{|}~¡¿«»‘’“”„–—…·•′″、。，！？；：（）「」『』【】・〜'::text, '                                                                '::text), '[ ]+'::text, ' '::text, 'g'::text)), '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff])'::text, ' \1 '::text, 'g'::text), '([^ ]{48})[^ ]+'::text, '\1'::text, 'g'::text), '[ ]+'::text, ' '::text, 'g'::text)), '([^ ]+)'::text, textcat(to_hex(company_id), '|\1'::text), 'g'::text), ' '::text))) WITH (fastupdate=off);

CREATE INDEX changes_to_touch_of ON public.changes_to_touch USING btree (record, refers_by, id);

CREATE INDEX changes_to_touch_since ON public.changes_to_touch USING btree (xid);

CREATE UNIQUE INDEX floor_name ON public.floor USING btree (property_id, name, building_id) NULLS NOT DISTINCT;

CREATE UNIQUE INDEX floorplan_name ON public.floorplan USING btree (property_id, name);

CREATE INDEX import_batch_leaving ON public.import_batch USING btree (company_id) WHERE (leaving IS NOT NULL);

CREATE INDEX import_batch_of ON public.import_batch USING btree (company_id, import_key, kind, id);

CREATE INDEX import_batch_recorded ON public.import_batch USING btree (recorded_at);

CREATE INDEX inspection_changed ON public.inspection USING btree (company_id, changed_xid, id);

CREATE INDEX inspection_document_shape ON public.inspection USING btree (document_shape, id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_follows_assignee ON public.inspection USING btree (company_id, assignee_id, id) WHERE (((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL))) AND (assignee_id IS NOT NULL));

CREATE INDEX inspection_page ON public.inspection USING btree (company_id, id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_page_of_property ON public.inspection USING btree (company_id, property_id, id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_page_of_property_and_status ON public.inspection USING btree (hashtextextended(published_status, property_id), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_page_of_status ON public.inspection USING btree (hashtextextended(published_status, company_id), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_page_of_unit ON public.inspection USING btree (company_id, unit_id, id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_page_of_unit_and_status ON public.inspection USING btree (hashtextextended(published_status, unit_id), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_search_assignee ON public.inspection USING btree (hashtextextended(textcat(published_status, textcat(' '::text, COALESCE(result, ''::text))), hashint8extended(COALESCE(assignee_id, (0)::bigint), company_id)), COALESCE(scheduled_date, completed_date, 'infinity'::date), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_search_assignee_in_property ON public.inspection USING btree (hashtextextended(textcat(published_status, textcat(' '::text, COALESCE(result, ''::text))), hashint8extended(COALESCE(assignee_id, (0)::bigint), property_id)), COALESCE(scheduled_date, completed_date, 'infinity'::date), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_search_cancelled ON public.inspection USING btree (hashtextextended(textcat(published_status, textcat(' '::text, COALESCE(result, ''::text))), company_id), COALESCE(scheduled_date, completed_date, 'infinity'::date), id) WHERE (kind = 'cancelled'::text);

CREATE INDEX inspection_search_company ON public.inspection USING btree (hashtextextended(textcat(published_status, textcat(' '::text, COALESCE(result, ''::text))), company_id), COALESCE(scheduled_date, completed_date, 'infinity'::date), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_search_property ON public.inspection USING btree (hashtextextended(textcat(published_status, textcat(' '::text, COALESCE(result, ''::text))), property_id), COALESCE(scheduled_date, completed_date, 'infinity'::date), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_search_unit ON public.inspection USING btree (hashtextextended(textcat(published_status, textcat(' '::text, COALESCE(result, ''::text))), unit_id), COALESCE(scheduled_date, completed_date, 'infinity'::date), id) WHERE ((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)));

CREATE INDEX inspection_stale ON public.inspection USING btree (company_id, scheduled_date) WHERE (((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL))) AND (status = ANY (ARRAY['Scheduled'::text, 'In Progress'::text])) AND (stale_announced_at IS NULL) AND (scheduled_date IS NOT NULL));

CREATE UNIQUE INDEX inspection_template_default ON public.inspection_template USING btree (company_id, lower(inspection_type)) WHERE is_default;

CREATE UNIQUE INDEX inspection_template_named ON public.inspection_template USING btree (company_id, lower(name));

CREATE INDEX ix_idempotency_recorded_at ON public.idempotency USING btree (recorded_at);

CREATE INDEX ix_inbox_applied_at ON public.inbox USING btree (applied_at);

CREATE UNIQUE INDEX location_name ON public.location USING btree (property_id, name, location_type);

CREATE INDEX meter_changed ON public.meter USING btree (company_id, changed_xid, id);

CREATE INDEX meter_changes ON public.meter USING btree ((((company_id << 30) # (id >> 14))), updated_at);

CREATE INDEX meter_changes_of_property ON public.meter USING btree ((((property_id << 30) # (id >> 14))), updated_at);

CREATE INDEX meter_changes_of_unit ON public.meter USING btree ((((unit_id << 30) # (id >> 14))), updated_at);

CREATE INDEX meter_document_shape ON public.meter USING btree (document_shape, id);

CREATE INDEX meter_names ON public.meter USING btree (company_id, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX meter_names_of_property ON public.meter USING btree (company_id, property_id, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX meter_names_of_utility_type ON public.meter USING btree (company_id, utility_type, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX meter_page_of_property ON public.meter USING btree (company_id, property_id, id);

CREATE INDEX meter_page_of_unit ON public.meter USING btree (company_id, unit_id, id);

CREATE INDEX meter_unsearched ON public.meter USING btree (company_id, id) WHERE (searched_version <> version);

CREATE INDEX meter_updated ON public.meter USING btree (company_id, updated_at);

CREATE INDEX notice_newest ON public.notice USING btree (company_id, COALESCE(published_at, 'infinity'::timestamp with time zone), id);

CREATE INDEX notice_newest_of_property ON public.notice USING btree (company_id, property_id, COALESCE(published_at, 'infinity'::timestamp with time zone), id);

CREATE INDEX outbox_recorded ON public.outbox USING btree (recorded_at);

CREATE INDEX outbox_unpublished ON public.outbox USING btree (event_id) WHERE (published_at IS NULL);

CREATE INDEX place_search_words ON public.place_search USING gin (words);

CREATE INDEX property_changed ON public.property USING btree (company_id, changed_xid, id);

CREATE INDEX property_document_shape ON public.property USING btree (document_shape, id);

CREATE INDEX property_names ON public.property USING btree (company_id, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX property_unsearched ON public.property USING btree (company_id, id) WHERE (searched_version <> version);

CREATE INDEX reading_changed ON public.reading USING btree (company_id, changed_xid, id);

CREATE INDEX reading_periods ON public.reading USING btree (company_id, meter_id, period_start, id);

CREATE INDEX staff_external_id ON public.staff USING btree (company_id, external_id);

CREATE INDEX unit_changed ON public.unit USING btree (company_id, changed_xid, id);

CREATE INDEX unit_document_shape ON public.unit USING btree (document_shape, id);

CREATE INDEX unit_names ON public.unit USING btree (company_id, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX unit_names_of_property ON public.unit USING btree (company_id, property_id, regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX unit_names_of_property_and_status ON public.unit USING btree (company_id, property_id, COALESCE(unit_status, ''::text), regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX unit_names_of_status ON public.unit USING btree (company_id, COALESCE(unit_status, ''::text), regexp_replace(regexp_replace(lower(name), '(\d+)'::text, '00000000\1'::text, 'g'::text), '\d*(\d{9})'::text, '\1'::text, 'g'::text), id);

CREATE INDEX unit_unsearched ON public.unit USING btree (company_id, id) WHERE (searched_version <> version);

CREATE INDEX vendor_changed ON public.vendor USING btree (company_id, changed_xid, id);

CREATE INDEX vendor_compliance_due ON public.vendor USING btree (company_id, compliance_due_on, id) WHERE (compliance_due_on IS NOT NULL);

CREATE INDEX vendor_document_shape ON public.vendor USING btree (document_shape, id);

CREATE INDEX vendor_of_business ON public.vendor USING btree (company_id, business_id, id);

CREATE INDEX vendor_on_hold ON public.vendor USING btree (company_id, id) WHERE on_hold;

CREATE INDEX vendor_search ON public.vendor USING btree (hashtextextended(textcat(text(on_hold), textcat(text(is_active), COALESCE(last_compliance_state, 'unknown'::text))), company_id), id);

CREATE INDEX vendor_search_insurance ON public.vendor USING btree (hashtextextended(textcat(text(on_hold), textcat(text(is_active), COALESCE(last_compliance_state, 'unknown'::text))), company_id), COALESCE(insurance_expires_on, 'infinity'::date), id);

CREATE INDEX vendor_words ON public.vendor USING gin (array_to_tsvector(string_to_array(regexp_replace(btrim(regexp_replace(regexp_replace(regexp_replace(btrim(regexp_replace(translate(replace(translate(regexp_replace(NORMALIZE(textcat(COALESCE(nickname, ''::text), textcat(' '::text, COALESCE(external_id, ''::text))), NFKD), '[\u0300-\u036f]'::text, ''::text, 'g'::text), 'ABCDEFGHIJKLMNOPQRSTUVWXYZΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯĐØŁÆŒÞđøłıςґҐ'::text, 'abcdefghijklmnopqrstuvwxyzαβγδεζηθικλμνξοπρστυφχψωђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъыьэюяdolæœþdoliσгг'::text), 'ß'::text, 'ss'::text), '!"#$&''()*+,-./:;<=>?@[\]^_`{|}~¡¿«»‘’“”„–—…·•′″、。，！？；：（）「」『』【】・〜'::text, '                                                                '::text), '[ ]+'::text, ' '::text, 'g'::text)), '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff])'::text, ' \1 '::text, 'g'::text), '([^ ]{48})[^ ]+'::text, '\1'::text, 'g'::text), '[ ]+'::text, ' '::text, 'g'::text)), '([^ ]+)'::text, textcat(to_hex(company_id), '|\1'::text), 'g'::text), ' '::text))) WITH (fastupdate=off);

CREATE INDEX withdrawn_record_changed ON public.withdrawn_record USING btree (company_id, kind, changed_xid, id);

CREATE INDEX withdrawn_record_external_id ON public.withdrawn_record USING btree (company_id, kind, external_id);

CREATE TRIGGER asset_changed BEFORE UPDATE ON public.asset FOR EACH ROW EXECUTE FUNCTION public.record_change_of_asset();

CREATE TRIGGER asset_follows_location_by_property_id AFTER UPDATE ON public.location FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id) OR (old.location_type IS DISTINCT FROM new.location_type))) EXECUTE FUNCTION public.mark_dependants('asset', 'property_id', 'property_id', 'true');

CREATE TRIGGER asset_follows_property_by_property_id AFTER UPDATE ON public.property FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('asset', 'property_id', 'id', 'true');

CREATE TRIGGER asset_follows_unit_by_unit_id AFTER UPDATE ON public.unit FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('asset', 'unit_id', 'id', 'true');

CREATE TRIGGER inspection_changed BEFORE UPDATE ON public.inspection FOR EACH ROW EXECUTE FUNCTION public.record_change_of_inspection();

CREATE TRIGGER inspection_follows_property_by_property_id AFTER UPDATE ON public.property FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('inspection', 'property_id', 'id', 'inspection.kind = ''operations'' OR inspection.kind = ''acceptance_walk'' AND inspection.engagement IS NULL');

CREATE TRIGGER inspection_follows_staff_by_assignee_id AFTER UPDATE ON public.staff FOR EACH ROW WHEN ((old.name IS DISTINCT FROM new.name)) EXECUTE FUNCTION public.mark_dependants('inspection', 'assignee_id', 'id', 'inspection.kind = ''operations'' OR inspection.kind = ''acceptance_walk'' AND inspection.engagement IS NULL');

CREATE TRIGGER inspection_follows_unit_by_unit_id AFTER UPDATE ON public.unit FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('inspection', 'unit_id', 'id', 'inspection.kind = ''operations'' OR inspection.kind = ''acceptance_walk'' AND inspection.engagement IS NULL');

CREATE TRIGGER meter_changed BEFORE UPDATE ON public.meter FOR EACH ROW EXECUTE FUNCTION public.record_change_of_meter();

CREATE TRIGGER meter_follows_property_by_property_id AFTER UPDATE ON public.property FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('meter', 'property_id', 'id', 'true');

CREATE TRIGGER meter_follows_unit_by_unit_id AFTER UPDATE ON public.unit FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('meter', 'unit_id', 'id', 'true');

CREATE TRIGGER property_changed BEFORE UPDATE ON public.property FOR EACH ROW EXECUTE FUNCTION public.record_change_of_property();

CREATE TRIGGER reading_changed BEFORE UPDATE ON public.reading FOR EACH ROW EXECUTE FUNCTION public.record_change();

CREATE TRIGGER unit_changed BEFORE UPDATE ON public.unit FOR EACH ROW EXECUTE FUNCTION public.record_change_of_unit();

CREATE TRIGGER unit_follows_building_by_property_id AFTER UPDATE ON public.building FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('unit', 'property_id', 'property_id', 'true');

CREATE TRIGGER unit_follows_floor_by_property_id AFTER UPDATE ON public.floor FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('unit', 'property_id', 'property_id', 'true');

CREATE TRIGGER unit_follows_floorplan_by_property_id AFTER UPDATE ON public.floorplan FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id) OR (old.bedrooms IS DISTINCT FROM new.bedrooms) OR (old.bathrooms IS DISTINCT FROM new.bathrooms) OR (old.square_feet IS DISTINCT FROM new.square_feet))) EXECUTE FUNCTION public.mark_dependants('unit', 'property_id', 'property_id', 'true');

CREATE TRIGGER unit_follows_property_by_property_id AFTER UPDATE ON public.property FOR EACH ROW WHEN (((old.name IS DISTINCT FROM new.name) OR (old.external_id IS DISTINCT FROM new.external_id))) EXECUTE FUNCTION public.mark_dependants('unit', 'property_id', 'id', 'true');

CREATE TRIGGER vendor_changed BEFORE UPDATE ON public.vendor FOR EACH ROW EXECUTE FUNCTION public.record_change_of_vendor();

CREATE TRIGGER vendor_follows_business_by_business_id AFTER UPDATE ON public.business FOR EACH ROW WHEN (((old.legal_name IS DISTINCT FROM new.legal_name) OR (old.website IS DISTINCT FROM new.website))) EXECUTE FUNCTION public.mark_dependants('vendor', 'business_id', 'id', 'true');

ALTER TABLE ONLY public.asset
    ADD CONSTRAINT asset_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.asset
    ADD CONSTRAINT asset_company_id_property_id_location_id_fkey FOREIGN KEY (company_id, property_id, location_id) REFERENCES public.location(company_id, property_id, id);

ALTER TABLE ONLY public.asset
    ADD CONSTRAINT asset_company_id_property_id_unit_id_fkey FOREIGN KEY (company_id, property_id, unit_id) REFERENCES public.unit(company_id, property_id, id);

ALTER TABLE ONLY public.building
    ADD CONSTRAINT building_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.floor
    ADD CONSTRAINT floor_company_id_property_id_building_id_fkey FOREIGN KEY (company_id, property_id, building_id) REFERENCES public.building(company_id, property_id, id);

ALTER TABLE ONLY public.floor
    ADD CONSTRAINT floor_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.floorplan
    ADD CONSTRAINT floorplan_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.inspection
    ADD CONSTRAINT inspection_company_id_assignee_id_fkey FOREIGN KEY (company_id, assignee_id) REFERENCES public.staff(company_id, id);

ALTER TABLE ONLY public.inspection
    ADD CONSTRAINT inspection_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.inspection
    ADD CONSTRAINT inspection_company_id_property_id_unit_id_fkey FOREIGN KEY (company_id, property_id, unit_id) REFERENCES public.unit(company_id, property_id, id);

ALTER TABLE ONLY public.inspection_number
    ADD CONSTRAINT inspection_number_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.inspection_row
    ADD CONSTRAINT inspection_row_company_id_asset_id_fkey FOREIGN KEY (company_id, asset_id) REFERENCES public.asset(company_id, id);

ALTER TABLE ONLY public.inspection_row
    ADD CONSTRAINT inspection_row_company_id_inspection_id_fkey FOREIGN KEY (company_id, inspection_id) REFERENCES public.inspection(company_id, id);

ALTER TABLE ONLY public.location
    ADD CONSTRAINT location_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.meter
    ADD CONSTRAINT meter_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.meter
    ADD CONSTRAINT meter_company_id_property_id_unit_id_fkey FOREIGN KEY (company_id, property_id, unit_id) REFERENCES public.unit(company_id, property_id, id);

ALTER TABLE ONLY public.notice
    ADD CONSTRAINT notice_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.notice_unit
    ADD CONSTRAINT notice_unit_company_id_property_id_notice_id_fkey FOREIGN KEY (company_id, property_id, notice_id) REFERENCES public.notice(company_id, property_id, id);

ALTER TABLE ONLY public.notice_unit
    ADD CONSTRAINT notice_unit_company_id_property_id_unit_id_fkey FOREIGN KEY (company_id, property_id, unit_id) REFERENCES public.unit(company_id, property_id, id);

ALTER TABLE ONLY public.reading
    ADD CONSTRAINT reading_company_id_meter_id_fkey FOREIGN KEY (company_id, meter_id) REFERENCES public.meter(company_id, id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_company_id_property_id_building_id_fkey FOREIGN KEY (company_id, property_id, building_id) REFERENCES public.building(company_id, property_id, id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_company_id_property_id_fkey FOREIGN KEY (company_id, property_id) REFERENCES public.property(company_id, id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_company_id_property_id_floor_id_fkey FOREIGN KEY (company_id, property_id, floor_id) REFERENCES public.floor(company_id, property_id, id);

ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_company_id_property_id_floorplan_id_fkey FOREIGN KEY (company_id, property_id, floorplan_id) REFERENCES public.floorplan(company_id, property_id, id);

ALTER TABLE ONLY public.vendor
    ADD CONSTRAINT vendor_company_id_business_id_fkey FOREIGN KEY (company_id, business_id) REFERENCES public.business(company_id, id);
