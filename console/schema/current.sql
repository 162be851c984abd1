CREATE TABLE public.act_address (
    company_id bigint NOT NULL,
    request_id text NOT NULL,
    address text NOT NULL,
    acted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.bulk_act (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    person text NOT NULL,
    act text NOT NULL,
    path text NOT NULL,
    name text NOT NULL,
    before text NOT NULL,
    after text DEFAULT '{}'::text NOT NULL,
    began_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    undone_at timestamp with time zone
);

ALTER TABLE public.bulk_act ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.bulk_act_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.default_view (
    company_id bigint NOT NULL,
    person text NOT NULL,
    list text NOT NULL,
    view_id bigint NOT NULL
);

CREATE TABLE public.first_steps (
    company_id bigint NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.job (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    act text NOT NULL,
    person text NOT NULL,
    file_name text NOT NULL,
    file_bytes bigint NOT NULL,
    stored_as text NOT NULL,
    reading text DEFAULT '{}'::text NOT NULL,
    state text DEFAULT 'reading'::text NOT NULL,
    stopped_in text DEFAULT ''::text NOT NULL,
    fault text DEFAULT ''::text NOT NULL,
    kind text DEFAULT ''::text NOT NULL,
    mapping text DEFAULT ''::text NOT NULL,
    events boolean DEFAULT false NOT NULL,
    facts text DEFAULT '{}'::text NOT NULL,
    outcome text DEFAULT '{}'::text NOT NULL,
    "position" bigint DEFAULT '0'::bigint NOT NULL,
    run integer DEFAULT 0 NOT NULL,
    cancels boolean DEFAULT false NOT NULL,
    permit text DEFAULT ''::text NOT NULL,
    runner text DEFAULT ''::text NOT NULL,
    lease_until timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    uploaded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    undoes boolean DEFAULT false NOT NULL,
    undo text DEFAULT '{}'::text NOT NULL,
    CONSTRAINT job_state CHECK ((state = ANY (ARRAY['reading'::text, 'mapping'::text, 'checking'::text, 'checked'::text, 'running'::text, 'done'::text, 'stopped'::text, 'cancelled'::text])))
);

ALTER TABLE public.job ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.reject (
    job_id bigint NOT NULL,
    number integer NOT NULL,
    kind text NOT NULL,
    text bytea NOT NULL
);

CREATE TABLE public.saved_view (
    id bigint NOT NULL,
    company_id bigint NOT NULL,
    person text NOT NULL,
    act text NOT NULL,
    list text NOT NULL,
    query text NOT NULL,
    name text NOT NULL,
    is_shared boolean DEFAULT false NOT NULL
);

ALTER TABLE public.saved_view ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.saved_view_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.act_address
    ADD CONSTRAINT act_address_pkey PRIMARY KEY (company_id, request_id, address);

ALTER TABLE ONLY public.bulk_act
    ADD CONSTRAINT bulk_act_act UNIQUE (company_id, act);

ALTER TABLE ONLY public.bulk_act
    ADD CONSTRAINT bulk_act_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.default_view
    ADD CONSTRAINT default_view_pkey PRIMARY KEY (company_id, person, list);

ALTER TABLE ONLY public.first_steps
    ADD CONSTRAINT first_steps_pkey PRIMARY KEY (company_id);

ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_act UNIQUE (company_id, act);

ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.reject
    ADD CONSTRAINT reject_pkey PRIMARY KEY (job_id, number);

ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT saved_view_act UNIQUE (company_id, act);

ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT saved_view_name UNIQUE (company_id, list, person, name);

ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT saved_view_pkey PRIMARY KEY (id);

CREATE INDEX act_address_acted ON public.act_address USING btree (acted_at);

CREATE INDEX bulk_act_began ON public.bulk_act USING btree (began_at);

CREATE INDEX default_view_of ON public.default_view USING btree (view_id);

CREATE INDEX job_of_company ON public.job USING btree (company_id, id);

CREATE INDEX job_to_do ON public.job USING btree (id) WHERE ((state = 'reading'::text) OR (state = 'checking'::text) OR (state = 'running'::text));

CREATE INDEX job_uploaded ON public.job USING btree (uploaded_at);

ALTER TABLE ONLY public.default_view
    ADD CONSTRAINT default_view_view_id_fkey FOREIGN KEY (view_id) REFERENCES public.saved_view(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.reject
    ADD CONSTRAINT reject_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.job(id) ON DELETE CASCADE;
