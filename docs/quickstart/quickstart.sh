# 1. Your key: a company administrator mints one of scope write in the console, under Keys.
export MAKEREADY_BASE_URL='https://makeready.example/api/v1'
export MAKEREADY_API_KEY='mk_…'
curl "$MAKEREADY_BASE_URL/whoami" -H "Authorization: Bearer $MAKEREADY_API_KEY"

# 2. List: units, in the order of their ids.
curl "$MAKEREADY_BASE_URL/units?limit=3" -H "Authorization: Bearer $MAKEREADY_API_KEY"

# 3. Create: a ticket on the first unit. Sent again with the same Idempotency-Key, it is still one ticket.
unit=$(curl -s "$MAKEREADY_BASE_URL/units?limit=1" -H "Authorization: Bearer $MAKEREADY_API_KEY" |
  grep -o '"entity_id":[0-9]*' | cut -d: -f2)
ticket=$(curl -s "$MAKEREADY_BASE_URL/tickets" \
  -H "Authorization: Bearer $MAKEREADY_API_KEY" \
  -H 'Content-Type: application/json' -H "Idempotency-Key: quickstart-$(date +%s)" \
  -d "{\"unit_id\": $unit, \"title\": \"Kitchen tap drips\", \"category\": \"Plumbing\"}")
echo "$ticket"
id=$(echo "$ticket" | grep -o '"entity_id":[0-9]*' | cut -d: -f2)

# 4. Receive: the event that this caused. The answer comes as soon as there is one.
curl "$MAKEREADY_BASE_URL/events?event=ticket.created&entity_type=ticket&entity_id=$id&wait=25" \
  -H "Authorization: Bearer $MAKEREADY_API_KEY"
