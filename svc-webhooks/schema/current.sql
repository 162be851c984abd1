CREATE SCHEMA partitions;

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
    CONSTRAINT attempt_cause CHECK ((cause = ANY (ARRAY['sweep'::text, 'retry'::text]))),
    CONSTRAINT attempt_due_at CHECK (((state = 'waiting'::text) = (due_at IS NOT NULL))),
    CONSTRAINT attempt_number CHECK ((number > 0)),
    CONSTRAINT attempt_state CHECK ((state = ANY (ARRAY['waiting'::text, 'succeeded'::text, 'parked'::text]))),
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
    timezone text DEFAULT 'UTC'::text NOT NULL
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
    CONSTRAINT delivery_due_at CHECK (((state = 'waiting'::text) = (due_at IS NOT NULL))),
    CONSTRAINT delivery_leased_until CHECK (((state = 'waiting'::text) OR (leased_until IS NULL))),
    CONSTRAINT delivery_rung CHECK (((0 <= rung) AND (rung <= attempts))),
    CONSTRAINT delivery_settled_at CHECK (((state = 'waiting'::text) = (settled_at IS NULL))),
    CONSTRAINT delivery_state CHECK ((state = ANY (ARRAY['waiting'::text, 'succeeded'::text, 'parked'::text])))
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
    stored_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
PARTITION BY RANGE (event_id);

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
    CONSTRAINT subscription_events CHECK (((cardinality(events) > 0) AND (events <@ ARRAY['inspection.stale'::text, 'pm.stale'::text, 'property.notice.published'::text, 'ticket.created'::text, 'ticket.stale'::text, 'ticket.status_changed'::text, 'turn.schedule_changed'::text, 'turn.status_changed'::text, 'turn.task.stale'::text, 'vendor.hold'::text]))),
    CONSTRAINT subscription_failures_in_a_row CHECK (((failures_in_a_row = 0) = (health = ANY (ARRAY['healthy'::text, 'paused'::text])))),
    CONSTRAINT subscription_health CHECK ((health = ANY (ARRAY['healthy'::text, 'retrying'::text, 'dead_lettered'::text, 'paused'::text]))),
    CONSTRAINT subscription_paused_at CHECK (((health = 'paused'::text) = (paused_at IS NOT NULL))),
    CONSTRAINT subscription_source CHECK ((source = 'api'::text))
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

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_claim PRIMARY KEY (company_id, api_key_id, idempotency_key);

ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.reconciled
    ADD CONSTRAINT reconciled_pkey PRIMARY KEY (producer);

ALTER TABLE ONLY public.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (id);

CREATE INDEX audit_of_company ON public.audit USING btree (company_id, id);

CREATE INDEX audit_of_kind ON public.audit USING btree (company_id, subject, id);

CREATE INDEX audit_of_subject ON public.audit USING btree (company_id, subject, subject_id, id);

CREATE INDEX delivery_due ON ONLY public.delivery USING btree (subscription_id, due_at) WHERE (state = 'waiting'::text);

CREATE INDEX delivery_of_subscription ON ONLY public.delivery USING btree (subscription_id, event_id);

CREATE INDEX delivery_parked ON ONLY public.delivery USING btree (subscription_id, event_id) WHERE (state = 'parked'::text);

CREATE INDEX ix_idempotency_recorded_at ON public.idempotency USING btree (recorded_at);

CREATE INDEX ix_inbox_applied_at ON public.inbox USING btree (applied_at);

CREATE INDEX subscription_page ON public.subscription USING btree (company_id, id);
