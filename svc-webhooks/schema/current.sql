CREATE SCHEMA partitions;

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

CREATE FUNCTION public.end_failed_sweeps() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.failed_sweeps := '{}';
    RETURN NEW;
END $$;

CREATE FUNCTION public.feed_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    WITH added AS (
        SELECT company_id, event_id, event, entity_id, body,
               row_number() OVER (PARTITION BY company_id ORDER BY event_id) AS number,
               count(*) OVER (PARTITION BY company_id) AS numbers
        FROM stored WHERE event <> 'webhook.test'
    ), counted AS (
        INSERT INTO feed AS f (company_id, position, stored_at)
        SELECT company_id, count(*), clock_timestamp() + coalesce((SELECT c.clock_offset FROM company c WHERE c.id = added.company_id), '0')
        FROM added GROUP BY company_id ORDER BY company_id
        ON CONFLICT (company_id) DO UPDATE
        SET position = f.position + excluded.position,
            stored_at = greatest(f.stored_at, clock_timestamp() + coalesce((SELECT c.clock_offset FROM company c WHERE c.id = excluded.company_id), '0'))
        RETURNING f.company_id, f.position, f.stored_at
    )
    INSERT INTO feed_entry (company_id, position, stored_at, event_id, event, entity_id, body)
    SELECT a.company_id, c.position - a.numbers + a.number, c.stored_at, a.event_id, a.event, a.entity_id,
           CASE WHEN a.event_id < (
               lpad(to_hex((extract(epoch FROM date_trunc('day', c.stored_at, 'UTC')) * 1000)::bigint), 12, '0')
               || repeat('0', 20)
           )::uuid THEN a.body END
    FROM added a JOIN counted c USING (company_id);
    RETURN NULL;
END $$;

CREATE TABLE public.answered_receiver (
    receiver text NOT NULL,
    answered_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.attempt (
    event_id uuid NOT NULL,
    subscription_id bigint NOT NULL,
    number integer NOT NULL,
    cause text DEFAULT 'sweep'::text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    duration_milliseconds integer NOT NULL,
    connect_milliseconds integer,
    tls_milliseconds integer,
    first_byte_milliseconds integer,
    address text,
    status smallint,
    error text NOT NULL,
    response_excerpt bytea NOT NULL,
    state text NOT NULL,
    due_at timestamp with time zone,
    actor text DEFAULT ''::text NOT NULL,
    replay_id bigint,
    clock_offset interval,
    CONSTRAINT attempt_cause CHECK ((cause = ANY (ARRAY['sweep'::text, 'retry'::text, 'manual'::text, 'resend'::text, 'test'::text, 'replay'::text]))),
    CONSTRAINT attempt_due_at CHECK (((state = 'waiting'::text) = (due_at IS NOT NULL))),
    CONSTRAINT attempt_number CHECK ((number > 0)),
    CONSTRAINT attempt_state CHECK ((state = ANY (ARRAY['waiting'::text, 'succeeded'::text, 'parked'::text, 'failed'::text]))),
    CONSTRAINT attempt_succeeded CHECK (((error <> ''::text) OR ((status IS NOT NULL) AND ((status >= 200) AND (status <= 299)))))
)
PARTITION BY RANGE (event_id);

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

CREATE TABLE public.delivery (
    event_id uuid NOT NULL,
    subscription_id bigint NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    rung smallint DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    leased_until timestamp with time zone,
    settled_at timestamp with time zone,
    requested_by text,
    replay_id bigint,
    resumes_at timestamp with time zone,
    CONSTRAINT delivery_due_at CHECK (((state = 'waiting'::text) = (due_at IS NOT NULL))),
    CONSTRAINT delivery_leased_until CHECK (((state <> 'parked'::text) OR (leased_until IS NULL))),
    CONSTRAINT delivery_rung CHECK (((0 <= rung) AND (rung <= attempts))),
    CONSTRAINT delivery_settled_at CHECK (((state = 'waiting'::text) = (settled_at IS NULL))),
    CONSTRAINT delivery_state CHECK ((state = ANY (ARRAY['waiting'::text, 'succeeded'::text, 'parked'::text, 'failed'::text])))
)
PARTITION BY RANGE (event_id);

CREATE TABLE public.erasure (
    subscription_id bigint NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.event (
    event_id uuid NOT NULL,
    company_id bigint NOT NULL,
    event text NOT NULL,
    entity_id bigint NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    request_id text NOT NULL,
    body bytea NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    traceparent text
)
PARTITION BY RANGE (event_id);

CREATE TABLE public.feed (
    company_id bigint NOT NULL,
    "position" bigint NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    begins_after bigint DEFAULT 0 NOT NULL,
    begins_after_event_id uuid,
    CONSTRAINT feed_begins_after CHECK (((0 <= begins_after) AND (begins_after <= "position")))
);

CREATE TABLE public.feed_entry (
    company_id bigint NOT NULL,
    "position" bigint NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    event_id uuid NOT NULL,
    event text NOT NULL,
    entity_id bigint NOT NULL,
    body bytea
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

CREATE TABLE public.inbox (
    event_id uuid NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.reconciled (
    producer text NOT NULL,
    recorded_until timestamp with time zone NOT NULL
);

CREATE TABLE public.replay (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    subscription_id bigint NOT NULL,
    since timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL,
    events text[] NOT NULL,
    state text NOT NULL,
    after_position bigint NOT NULL,
    until_position bigint NOT NULL,
    matched bigint NOT NULL,
    queued bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    finished_at timestamp with time zone,
    succeeded bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    CONSTRAINT replay_state CHECK ((state = ANY (ARRAY['all'::text, 'parked'::text, 'failed'::text])))
);

CREATE SEQUENCE public.replay_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.subscription (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    destination_url text NOT NULL,
    events text[] NOT NULL,
    health text DEFAULT 'healthy'::text NOT NULL,
    failures_in_a_row integer DEFAULT 0 NOT NULL,
    paused_at timestamp with time zone,
    secret_prefix text NOT NULL,
    secret_key_id text NOT NULL,
    secret_sealed bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    source text NOT NULL,
    failing_since timestamp with time zone,
    paused_by text DEFAULT ''::text NOT NULL,
    pause_reason text DEFAULT ''::text NOT NULL,
    secret_since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    created_by text,
    failed_sweeps timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL,
    delivering_sweep timestamp with time zone,
    property_ids bigint[],
    categories text[],
    priorities text[],
    CONSTRAINT subscription_categories CHECK (((cardinality(categories) > 0) AND (categories <@ ARRAY['HVAC'::text, 'Plumbing'::text, 'Electrical'::text, 'Mechanical'::text, 'Life Safety'::text, 'Elevator'::text, 'Appliance'::text, 'Doors/Windows'::text, 'Flooring'::text, 'Painting'::text, 'Roofing'::text, 'Leak'::text, 'Pest Control'::text, 'Structural'::text, 'Grounds'::text, 'Parking Garage'::text, 'Pool'::text, 'Security'::text, 'Common Area'::text, 'General'::text, 'Other'::text]))),
    CONSTRAINT subscription_events CHECK (((cardinality(events) > 0) AND (events <@ ARRAY['inspection.stale'::text, 'pm.stale'::text, 'property.notice.published'::text, 'ticket.created'::text, 'ticket.stale'::text, 'ticket.status_changed'::text, 'turn.schedule_changed'::text, 'turn.status_changed'::text, 'turn.task.stale'::text, 'vendor.hold'::text]))),
    CONSTRAINT subscription_failures_in_a_row CHECK (((failures_in_a_row = 0) = (health = ANY (ARRAY['healthy'::text, 'paused'::text])))),
    CONSTRAINT subscription_health CHECK ((health = ANY (ARRAY['healthy'::text, 'retrying'::text, 'dead_lettered'::text, 'paused'::text]))),
    CONSTRAINT subscription_paused_at CHECK (((health = 'paused'::text) = (paused_at IS NOT NULL))),
    CONSTRAINT subscription_priorities CHECK (((cardinality(priorities) > 0) AND (priorities <@ ARRAY['Low'::text, 'Medium'::text, 'High'::text, 'Emergency'::text]))),
    CONSTRAINT subscription_property_ids CHECK ((cardinality(property_ids) > 0)),
    CONSTRAINT subscription_source CHECK ((source = ANY (ARRAY['api'::text, 'administrator'::text])))
);

CREATE SEQUENCE public.subscription_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER TABLE ONLY public.answered_receiver
    ADD CONSTRAINT answered_receiver_pkey PRIMARY KEY (receiver);

ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (event_id, subscription_id, number);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.company
    ADD CONSTRAINT company_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (event_id, subscription_id);

ALTER TABLE ONLY public.erasure
    ADD CONSTRAINT erasure_pkey PRIMARY KEY (subscription_id);

ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.feed_entry
    ADD CONSTRAINT feed_entry_pkey PRIMARY KEY (company_id, "position");

ALTER TABLE ONLY public.feed
    ADD CONSTRAINT feed_pkey PRIMARY KEY (company_id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_claim PRIMARY KEY (company_id, api_key_id, idempotency_key);

ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.reconciled
    ADD CONSTRAINT reconciled_pkey PRIMARY KEY (producer);

ALTER TABLE ONLY public.replay
    ADD CONSTRAINT replay_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (id);

CREATE INDEX attempt_of_subscription ON ONLY public.attempt USING btree (subscription_id, started_at);

CREATE INDEX audit_of_actor ON public.audit USING btree (company_id, actor, id);

CREATE INDEX audit_of_actor_and_kind ON public.audit USING btree (hashtextextended(subject, hashtextextended(actor, company_id)), id);

CREATE INDEX audit_of_company ON public.audit USING btree (company_id, id);

CREATE INDEX audit_of_kind ON public.audit USING btree (company_id, subject, id);

CREATE INDEX audit_of_request ON public.audit USING btree (company_id, request_id, id);

CREATE INDEX audit_of_subject ON public.audit USING btree (company_id, subject, subject_id, id);

CREATE INDEX audit_recorded ON public.audit USING btree (company_id, recorded_at, id);

CREATE INDEX delivery_due ON ONLY public.delivery USING btree (subscription_id, due_at) WHERE (state = 'waiting'::text);

CREATE INDEX delivery_of_subscription ON ONLY public.delivery USING btree (subscription_id, event_id);

CREATE INDEX delivery_parked ON ONLY public.delivery USING btree (subscription_id, event_id) WHERE (state = 'parked'::text);

CREATE INDEX event_of_kind ON ONLY public.event USING btree (company_id, event, event_id);

CREATE INDEX event_of_record ON ONLY public.event USING btree (company_id, entity_id, event_id);

CREATE INDEX event_of_request ON ONLY public.event USING btree (company_id, request_id, event_id) WHERE (request_id <> ''::text);

CREATE INDEX feed_entry_of_kind ON public.feed_entry USING btree (company_id, event, "position");

CREATE INDEX feed_entry_of_record ON public.feed_entry USING btree (company_id, entity_id, "position");

CREATE INDEX ix_idempotency_recorded_at ON public.idempotency USING btree (recorded_at);

CREATE INDEX ix_inbox_applied_at ON public.inbox USING btree (applied_at);

CREATE INDEX replay_finished ON public.replay USING btree (finished_at);

CREATE UNIQUE INDEX replay_under_way ON public.replay USING btree (subscription_id) WHERE (finished_at IS NULL);

CREATE INDEX subscription_page ON public.subscription USING btree (company_id, id);

CREATE TRIGGER event_is_fed AFTER INSERT ON public.event REFERENCING NEW TABLE AS stored FOR EACH STATEMENT EXECUTE FUNCTION public.feed_events();

CREATE TRIGGER failed_sweeps_end BEFORE UPDATE ON public.subscription FOR EACH ROW WHEN (((new.failures_in_a_row = 0) AND (new.failed_sweeps <> '{}'::timestamp with time zone[]))) EXECUTE FUNCTION public.end_failed_sweeps();
