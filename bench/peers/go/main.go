// The yardstick in another language: net/http and pgx, the statements of the hand-written Node peer, structs to JSON.
package main

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log"
	"math"
	"net/http"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const limit = 20

var (
	pool         *pgxpool.Pool
	pepper       = derive("api-key-pepper")
	cursorKey    = derive("cursor")
	errNoSuchKey = errors.New("no such key")
)

// For each path, its statement (from sql.mjs, passed in STATEMENTS) and the function that makes the response from the rows.
var routes = map[string]*route{
	"/api/public/profile":                   {name: "profile", answer: profile},
	"/api/public/events":                    {name: "events", answer: events},
	"/api/public/connections":               {name: "connections", answer: connections},
	"/api/public/achievements":              {name: "achievements", answer: achievements},
	"/api/public/achievements?action=stats": {name: "statistics", answer: statistics},
}

type route struct {
	name   string
	text   string
	answer func(rows pgx.Rows) (any, error)
}

func main() {
	var statements map[string]string
	if err := json.Unmarshal([]byte(os.Getenv("STATEMENTS")), &statements); err != nil {
		log.Fatal(err)
	}
	for _, r := range routes {
		r.text = statements[r.name]
	}
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.MaxConns = 10
	if pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(serve)))
}

func serve(w http.ResponseWriter, request *http.Request) {
	r := routes[request.URL.RequestURI()]
	if r == nil || request.Method != http.MethodGet {
		send(w, http.StatusNotFound, map[string]string{"code": "not_found"})
		return
	}
	key := request.Header.Get("X-API-Key")
	if len(key) != 71 {
		send(w, http.StatusUnauthorized, map[string]string{"code": "invalid_credentials"})
		return
	}
	rows, err := pool.Query(request.Context(), r.text, key[9:21], sum(pepper, key))
	var answer any
	if err == nil {
		answer, err = r.answer(rows)
		rows.Close()
		if err == nil {
			err = rows.Err()
		}
	}
	switch {
	case errors.Is(err, errNoSuchKey):
		send(w, http.StatusUnauthorized, map[string]string{"code": "invalid_credentials"})
	case request.Context().Err() != nil: // the caller has disconnected
	case err != nil:
		log.Print(err)
		send(w, http.StatusServiceUnavailable, map[string]string{"code": "temporarily_unavailable"})
	default:
		send(w, http.StatusOK, answer)
	}
}

func send(w http.ResponseWriter, status int, body any) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		log.Print(err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(buffer.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buffer.Bytes())
}

type moment time.Time

func (m moment) MarshalJSON() ([]byte, error) {
	return time.Time(m).UTC().AppendFormat(make([]byte, 0, 21), `"2006-01-02 15:04:05"`), nil
}

func momentOf(at *time.Time) *moment {
	if at == nil {
		return nil
	}
	m := moment(*at)
	return &m
}

type profileAnswer struct {
	ID                int64   `json:"id"`
	Username          string  `json:"username"`
	DisplayName       string  `json:"display_name"`
	Bio               *string `json:"bio"`
	ProfilePicture    *string `json:"profile_picture"`
	CreatedAt         *moment `json:"created_at"`
	AchievementsCount int64   `json:"achievements_count"`
	ConnectionsCount  int64   `json:"connections_count"`
}

func profile(rows pgx.Rows) (any, error) {
	if !rows.Next() {
		return nil, errNoSuchKey
	}
	var a profileAnswer
	var created time.Time
	err := rows.Scan(&a.ID, &a.Username, &a.DisplayName, &a.Bio, &a.ProfilePicture, &created, &a.AchievementsCount, &a.ConnectionsCount)
	a.CreatedAt = momentOf(&created)
	return a, err
}

type card struct {
	ID             int64   `json:"id"`
	Username       string  `json:"username"`
	DisplayName    string  `json:"display_name"`
	ProfilePicture *string `json:"profile_picture"`
}

type place struct {
	Name        *string `json:"name"`
	City        *string `json:"city"`
	CountryCode *string `json:"country_code"`
}

type page struct {
	Limit      int     `json:"limit"`
	Count      int     `json:"count"`
	Total      int64   `json:"total"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
	PrevCursor *string `json:"prev_cursor"`
	Sort       string  `json:"sort"`
}

type list[T any] struct {
	Data       []T  `json:"data"`
	Pagination page `json:"pagination"`
}

// Reads a list's rows; `scan` returns the item's time and id, or nulls for the only row of an empty list.
func read[T any](rows pgx.Rows, sort string, scan func(total **int64, item *T) (at *time.Time, id *int64, err error)) (list[T], error) {
	answer := list[T]{Data: make([]T, 0, limit), Pagination: page{Limit: limit, Sort: sort}}
	var total *int64
	var lastAt *time.Time
	var lastID *int64
	valid := false
	for rows.Next() {
		valid = true
		var item T
		at, id, err := scan(&total, &item)
		if err != nil {
			return answer, err
		}
		if id == nil {
			continue
		}
		if len(answer.Data) == limit {
			cursor := cursorOf(sort, lastAt, *lastID)
			answer.Pagination.HasMore, answer.Pagination.NextCursor = true, &cursor
			continue
		}
		answer.Data, lastAt, lastID = append(answer.Data, item), at, id
	}
	if !valid {
		return answer, errNoSuchKey
	}
	if total != nil {
		answer.Pagination.Total = *total
	}
	answer.Pagination.Count = len(answer.Data)
	return answer, nil
}

func cursorOf(sort string, at *time.Time, id int64) string {
	payload, _ := json.Marshal([]any{"after", at, id})
	mac := hmac.New(sha256.New, cursorKey)
	mac.Write([]byte(sort))
	mac.Write(payload)
	return base64.RawURLEncoding.EncodeToString(append(mac.Sum(nil)[:16], payload...))
}

type event struct {
	ID             *int64  `json:"id"`
	Title          *string `json:"title"`
	Summary        *string `json:"summary"`
	Status         *string `json:"status"`
	Visibility     *string `json:"visibility"`
	StartsAt       *moment `json:"starts_at"`
	EndsAt         *moment `json:"ends_at"`
	Timezone       *string `json:"timezone"`
	StartsAtLocal  *string `json:"starts_at_local"`
	EndsAtLocal    *string `json:"ends_at_local"`
	IsAllDay       *bool   `json:"is_all_day"`
	IsOnline       *bool   `json:"is_online"`
	Location       *place  `json:"location"`
	CoverImage     *string `json:"cover_image"`
	Organizer      card    `json:"organizer"`
	Role           *string `json:"role"`
	RsvpStatus     *string `json:"rsvp_status"`
	AttendeesCount *int64  `json:"attendees_count"`
	Capacity       *int64  `json:"capacity"`
	CreatedAt      *moment `json:"created_at"`
	UpdatedAt      *moment `json:"updated_at"`
}

func events(rows pgx.Rows) (any, error) {
	return read(rows, "-starts_at", func(total **int64, e *event) (*time.Time, *int64, error) {
		var starts, ends, created, updated *time.Time
		var at place
		var organizer *int64
		var username, displayName *string
		err := rows.Scan(total, &e.ID, &e.Title, &e.Summary, &e.Status, &e.Visibility, &starts, &ends, &e.Timezone, &e.StartsAtLocal,
			&e.EndsAtLocal, &e.IsAllDay, &e.IsOnline, &at.Name, &at.City, &at.CountryCode, &e.CoverImage, &organizer, &username,
			&displayName, &e.Organizer.ProfilePicture, &e.Role, &e.RsvpStatus, &e.AttendeesCount, &e.Capacity, &created, &updated)
		if err != nil || e.ID == nil {
			return nil, nil, err
		}
		e.StartsAt, e.EndsAt, e.CreatedAt, e.UpdatedAt = momentOf(starts), momentOf(ends), momentOf(created), momentOf(updated)
		if at.Name != nil || at.City != nil || at.CountryCode != nil {
			e.Location = &at
		}
		e.Organizer.ID, e.Organizer.Username, e.Organizer.DisplayName = *organizer, *username, *displayName
		return starts, e.ID, nil
	})
}

type met struct {
	ID    *int64  `json:"id"`
	Title *string `json:"title"`
}

type connection struct {
	ID          *int64  `json:"id"`
	User        card    `json:"user"`
	Status      *string `json:"status"`
	RequestedAt *moment `json:"requested_at"`
	ConnectedAt *moment `json:"connected_at"`
	Source      *string `json:"source"`
	MetAtEvent  *met    `json:"met_at_event"`
}

func connections(rows pgx.Rows) (any, error) {
	return read(rows, "-connected_at", func(total **int64, c *connection) (*time.Time, *int64, error) {
		var requested, connected *time.Time
		var peer *int64
		var username, displayName *string
		var at met
		err := rows.Scan(total, &c.ID, &peer, &username, &displayName, &c.User.ProfilePicture, &c.Status, &requested, &connected,
			&c.Source, &at.ID, &at.Title)
		if err != nil || c.ID == nil {
			return nil, nil, err
		}
		c.User.ID, c.User.Username, c.User.DisplayName = *peer, *username, *displayName
		c.RequestedAt, c.ConnectedAt = momentOf(requested), momentOf(connected)
		if at.ID != nil {
			c.MetAtEvent = &at
		}
		return connected, c.ID, nil
	})
}

type progress struct {
	Current    int64   `json:"current"`
	Target     int64   `json:"target"`
	Percentage float64 `json:"percentage"`
}

type achievement struct {
	ID               *int64    `json:"id"`
	Key              *string   `json:"key"`
	Name             *string   `json:"name"`
	Description      *string   `json:"description"`
	IconURL          *string   `json:"icon_url"`
	Category         *string   `json:"category"`
	Rarity           string    `json:"rarity"`
	RarityPercentage float64   `json:"rarity_percentage"`
	Points           *int64    `json:"points"`
	IsHidden         *bool     `json:"is_hidden"`
	Earned           bool      `json:"earned"`
	EarnedAt         *moment   `json:"earned_at"`
	Progress         *progress `json:"progress"`
	IsPinned         bool      `json:"is_pinned"`
	PinPosition      *int      `json:"pin_position"`
}

func achievements(rows pgx.Rows) (any, error) {
	return read(rows, "-earned_at", func(total **int64, a *achievement) (*time.Time, *int64, error) {
		var pins []int64
		var target, earners, current, pin, active *int64
		var earned *time.Time
		err := rows.Scan(total, &pins, &a.ID, &a.Key, &a.Name, &a.Description, &a.IconURL, &a.Category, &a.Points, &a.IsHidden, &target,
			&earners, &current, &earned, &pin, &active)
		if err != nil || a.ID == nil {
			return nil, nil, err
		}
		a.Rarity, a.RarityPercentage = rarityOf(*earners, *active), percentage(*earners, *active)
		a.Earned, a.EarnedAt = true, momentOf(earned)
		if target != nil {
			a.Progress = &progress{*current, *target, percentage(min(*current, *target), *target)}
		}
		if pin != nil {
			position := 0
			for _, other := range pins {
				if other <= *pin {
					position++
				}
			}
			a.IsPinned, a.PinPosition = true, &position
		}
		return earned, a.ID, nil
	})
}

type count struct {
	Total                int64   `json:"total"`
	Earned               int64   `json:"earned"`
	CompletionPercentage float64 `json:"completion_percentage"`
}

type categoryCount struct {
	Category string `json:"category"`
	count
}

type tierCount struct {
	Rarity        string   `json:"rarity"`
	MinPercentage *float64 `json:"min_percentage"`
	MaxPercentage *float64 `json:"max_percentage"`
	count
}

type rarest struct {
	ID               int64   `json:"id"`
	Name             string  `json:"name"`
	Rarity           string  `json:"rarity"`
	RarityPercentage float64 `json:"rarity_percentage"`
}

type statisticsAnswer struct {
	count
	PointsEarned     int64            `json:"points_earned"`
	PointsTotal      int64            `json:"points_total"`
	LastEarnedAt     *moment          `json:"last_earned_at"`
	ByCategory       []*categoryCount `json:"by_category"`
	ByRarity         []*tierCount     `json:"by_rarity"`
	RarestEarned     *rarest          `json:"rarest_earned"`
	RarityComputedAt *moment          `json:"rarity_computed_at"`
}

func statistics(rows pgx.Rows) (any, error) {
	answer := statisticsAnswer{ByCategory: []*categoryCount{}}
	tiers := map[string]*tierCount{}
	for _, t := range rarities {
		one := &tierCount{Rarity: t.name}
		if t.rated {
			low, high := t.from, t.to
			one.MinPercentage, one.MaxPercentage = &low, &high
		}
		answer.ByRarity = append(answer.ByRarity, one)
		tiers[t.name] = one
	}
	categories := map[string]*categoryCount{}
	var last *time.Time
	valid := false
	for rows.Next() {
		valid = true
		var id, points, active, earners *int64
		var name, category *string
		var earned *time.Time
		if err := rows.Scan(&id, &name, &category, &points, &earned, &active, &earners); err != nil {
			return nil, err
		}
		if id == nil {
			continue
		}
		rarity, share := rarityOf(*earners, *active), percentage(*earners, *active)
		group := categories[*category]
		if group == nil {
			group = &categoryCount{Category: *category}
			categories[*category] = group
			answer.ByCategory = append(answer.ByCategory, group)
		}
		for _, one := range []*count{&answer.count, &group.count, &tiers[rarity].count} {
			one.Total++
			if earned != nil {
				one.Earned++
			}
		}
		answer.PointsTotal += *points
		if earned == nil {
			continue
		}
		answer.PointsEarned += *points
		if last == nil || earned.After(*last) {
			last = earned
		}
		if answer.RarestEarned == nil || share < answer.RarestEarned.RarityPercentage {
			answer.RarestEarned = &rarest{*id, *name, rarity, share}
		}
	}
	if !valid {
		return nil, errNoSuchKey
	}
	sort.Slice(answer.ByCategory, func(i, j int) bool { return answer.ByCategory[i].Category < answer.ByCategory[j].Category })
	answer.complete()
	for _, group := range answer.ByCategory {
		group.complete()
	}
	for _, tier := range answer.ByRarity {
		tier.complete()
	}
	halfMinute := time.Now().UTC().Truncate(30 * time.Second)
	answer.LastEarnedAt, answer.RarityComputedAt = momentOf(last), momentOf(&halfMinute)
	return answer, nil
}

func (c *count) complete() { c.CompletionPercentage = percentage(c.Earned, c.Total) }

var rarities = []struct {
	name     string
	from, to float64
	rated    bool
}{
	{"common", 50, 100, true}, {"uncommon", 20, 50, true}, {"rare", 5, 20, true}, {"epic", 1, 5, true},
	{"legendary", 0, 1, true}, {"unrated", 0, 0, false},
}

func rarityOf(earners, active int64) string {
	if active >= 10 {
		for _, tier := range rarities {
			if float64(100*earners) >= tier.from*float64(active) {
				return tier.name
			}
		}
	}
	return "unrated"
}

// Two decimals, half up.
func percentage(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Floor(float64((20_000*part+whole)/(2*whole))) / 100
}

func derive(label string) []byte {
	secret, err := base64.StdEncoding.DecodeString(os.Getenv("SECRET_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "pua:"+label, 32)
	if err != nil {
		log.Fatal(err)
	}
	return key
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
